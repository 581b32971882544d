"""The quick way to a CDXJ line: for records as crawlers write nearly all of them, compiled.

`native/common_line.h` takes such a record's content to its line in one go. It is no second truth: what it
does not know at first sight it leaves to the modules that know every case (take_record,
make_captures, surt, cdxj), and tests hold that it gives the bytes that these give. Where it was not
compiled, these do all, a third slower.
"""

from __future__ import annotations

from functools import partial

from cdxmill.formats.cdxj import quote
from cdxmill.formats.surt import origin_keys
from cdxmill.stages import native
from cdxmill.stages.captures.make_captures import CaptureOptions
from cdxmill.stages.records.take_record import ReadCommon, base32, sha1


def common_reader(filename: bytes, options: CaptureOptions) -> ReadCommon | None:
    """A reader for an archive that `filename` stands for in every line.

    None where it was not compiled, and where `options` ask for lines that it does not make.
    """
    usual = options.lineless and {b"response", b"revisit"} <= (options.records or set())
    if native.read is None or not usual or options.minimal or options.unsurt:
        return None
    return partial(native.read, (origin_keys(options.keep_www), quote(filename)[1:-1], _digest))


def _digest(content: bytearray, start: int, end: int) -> bytes:
    return base32(sha1(memoryview(content)[start:end]))
