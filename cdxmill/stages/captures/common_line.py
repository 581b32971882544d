"""The compiled reader: a record of the common kind -> its CDXJ line.

`native/common_line.c` does this in one call. The Python modules (take_record, make_captures, surt,
cdxj) are the reference: whatever is unusual is left to them, and tests check that both give the
same bytes. If nothing was compiled, the Python modules do all the work, which takes a third longer.
"""

from __future__ import annotations

from functools import partial

from cdxmill.capture import CommonLine
from cdxmill.formats.lines.cdxj import quote
from cdxmill.formats.lines.surt import origin_keys
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.records.payload_digest import base32, sha1
from cdxmill.stages.records.take_record import ReadCommon


def common_reader(filename: bytes, options: CaptureOptions) -> ReadCommon[CommonLine] | None:
    """A reader for the archive whose lines have the field `filename`.

    None if nothing was compiled, or if `options` ask for lines that it does not make.
    """
    usual = options.lineless and {b"response", b"revisit"} <= (options.records or set())
    if native.read is None or not usual or options.minimal or options.unsurt:
        return None
    return partial(native.read, (origin_keys(options.keep_www), quote(filename)[1:-1], _digest))


_HEAD_END = b"\n\r\n"
"""The end of a WARC header and of an HTTP head, as `native/record.c` reads them: other ends are not common."""
_CLOSING = 4
"""Bytes after the block of a WARC record."""


def common_payload(content: bytearray) -> memoryview:
    """The payload of a record that the compiled reader has made a line of."""
    block = content.find(_HEAD_END) + len(_HEAD_END)
    payload = content.find(_HEAD_END, block) + len(_HEAD_END)
    return memoryview(content)[payload:-_CLOSING]


def is_revisit(content: bytearray) -> bool:
    """Whether a record that the compiled reader has made a line of is a revisit, and no response with its media type."""
    return b"\nwarc-type: revisit\r" in content[: content.find(_HEAD_END)].lower()


def _digest(content: bytearray | bytes, start: int, end: int) -> bytes:
    return base32(sha1(memoryview(content)[start:end]))
