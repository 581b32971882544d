"""A record, compared with the index line that led to it: URL, timestamp, digest.

The common kind is compared by compiled code. Whatever is unusual or differs is left to Python, which says what differs.

    member -> content, proven by libdeflate -> line by the compiled reader -> compared up to the digest -> SHA-1
"""

from __future__ import annotations

from collections.abc import Iterator

from cdxmill.capture import Capture, CommonLine, Record
from cdxmill.formats.archives.small_member import inflate_member
from cdxmill.formats.lines.capture_fields import ABSENT, RecordLocation
from cdxmill.formats.lines.cdx_lines import is_of_revisit, up_to_digest
from cdxmill.formats.lines.surt import origin_keys, surt
from cdxmill.formats.lines.timestamp import timestamp_of
from cdxmill.regex import regex
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.records.decode_payload import PayloadError, dechunk, decode_payload
from cdxmill.stages.records.read_units import QUICK_CONTENT
from cdxmill.stages.records.record_parts import (
    base32,
    digest_of,
    is_base32_of,
    payload_start,
    record_parts,
    sha1,
)

_SHA1 = regex(r"(?:sha1:)?([A-Z2-7]{32})")
_HAS_PAYLOAD = frozenset((b"response", b"resource", b"metadata", b"conversion"))
_HEAD_END = b"\n\r\n"
"""The end of a WARC header and of an HTTP head, as `native/record.c` reads them: other ends are not common."""
_CLOSING = 4
"""Bytes after the block of a WARC record."""
_DIGEST_FIELD = regex(rb'"digest": "([A-Z2-7]{32})"')


def wrong_digest(record: Record, content: Iterator[bytes], digest: str) -> str | None:
    """How the payload differs from `digest`, the one of the index line; None if it does not, or cannot be compared.

    Only SHA-1 in base32 is compared. Crawlers hash the payload as it was sent, without its chunks, or decoded. A
    truncated payload (WARC-Truncated) may have the digest of the whole one.
    """
    found = _SHA1.fullmatch(digest)
    if found is None or record.headers.get(b"warc-type") not in _HAS_PAYLOAD:
        return None
    wanted = found[1].encode()
    if not record.headers.get(b"warc-payload-digest"):
        return None  # its capture has the SHA-1 of the payload, which was compared with the line
    block = record.block
    if len(block) == record.size:
        start = payload_start(record.headers, block)
        own = digest_of(memoryview(block)[start:])
        if own == wanted or digest_of(block) == wanted:
            return None
    if record.headers.get(b"warc-truncated") or wanted in _other_digests(record, content):
        return None
    return f"the payload does not have the digest {found[1]} of the index line"


def _other_digests(record: Record, content: Iterator[bytes]) -> Iterator[bytes]:
    """The digests of the payload as it is, without chunks, and decoded; and that of the block."""
    parts = record_parts(record, content)
    hashes = [sha1(), sha1(parts.http_head)]
    kept, held = [], 0
    for piece in parts.payload:
        for one in hashes:
            one.update(piece)
        held += len(piece)
        if held <= len(record.block):
            kept.append(piece)
    yield from map(base32, hashes)
    if held > len(record.block):
        return
    for decode in (dechunk, lambda pieces: decode_payload(parts.http_head, pieces)):
        hashed = sha1()
        try:
            for piece in decode(iter(kept)):
                hashed.update(piece)
        except PayloadError:
            continue
        yield base32(hashed)


def capture_of_record(record: Record) -> Capture | None:
    """The capture of a record of any type; None if it has no URL."""
    captures = list(make_captures(iter((record,)), b"", CaptureOptions(records=None)))
    capture = captures[-1] if captures else None
    return capture if isinstance(capture, Capture) else None


def difference(capture: Capture | None, location: RecordLocation) -> str | None:
    """How a capture differs from its index line: another URL, timestamp or SHA-1. None if it matches.

    What the line does not have is not compared.
    """
    if capture is None:
        return f"the record has no URL, the index line has {location.url}"
    return other_capture(capture.url, capture.timestamp, location) or other_digest(capture, location)


def other_digest(capture: Capture, location: RecordLocation) -> str | None:
    """How the SHA-1 of a capture differs from that of its index line."""
    digest = (capture.digest or b"").decode("utf-8", "replace")
    wanted = location.digest.removeprefix("sha1:")
    if digest != wanted and _SHA1.fullmatch(digest) and _SHA1.fullmatch(wanted):
        return f"the record has the digest {digest}, the index line has {wanted} ({location.url})"
    return None


def other_capture(url: bytes, timestamp: bytes, location: RecordLocation) -> str | None:
    """How the URL or the timestamp of a record differs from its index line; None if they match."""
    time = timestamp.decode()
    if location.timestamp not in (ABSENT, time) and time != _moment(location.timestamp):
        return f"the record is from {time}, the index line is from {location.timestamp} ({location.url})"
    if location.url and not is_same_url(url, location.url):
        return f"the record is of {url.decode('utf-8', 'replace')}, the index line is of {location.url}"
    return None


def _moment(timestamp: str) -> str:
    """The timestamp of a line as cdxmill writes it. Some indexers copy the date of an ARC record as it is."""
    found = timestamp_of(timestamp[:14].encode("utf-8", "replace"))
    return timestamp if found is None else found.decode()


def is_same_url(recorded: bytes, named: str) -> bool:
    """Whether the URLs or their keys are equal. Indexers escape URLs differently."""
    try:
        other = named.encode("utf-8", "surrogateescape")
        return recorded == other or surt(recorded) == surt(other)
    except ValueError:
        return False


class CommonChecks:
    """Checks members, one after the other. `has_revisits` says whether revisits are accepted, too."""

    def __init__(self, has_revisits: bool = True) -> None:
        self._has_revisits = has_revisits
        self._wanted = b""
        self._is_checked = False
        self._archive = origin_keys(False), b"", self._own_digest

    def _own_digest(self, content: bytearray | bytes, start: int, end: int) -> bytes:
        """The digest of a payload whose record has none: the wanted one if it has that."""
        hashed = sha1(memoryview(content)[start:end])
        self._is_checked = is_base32_of(self._wanted, hashed.digest())
        return self._wanted if self._is_checked else base32(hashed)

    def line_of(self, member: bytes, line: bytes) -> CommonLine | None:
        """The line of a response or revisit at the start of a file without a name; None if it may differ from `line`.

        The member is exactly one record, key, timestamp, URL, MIME type, status and digest are equal, and the payload
        of a response has this digest, in SHA-1.
        """
        wanted = _DIGEST_FIELD.search(line)
        content = None if native.read is None or wanted is None else inflate_member(member, QUICK_CONTENT)
        if native.read is None or wanted is None or content is None:
            return None
        self._wanted, self._is_checked = wanted[1], False
        made = native.read(self._archive, content, 0, len(member))
        if not isinstance(made, CommonLine):
            return None
        same = up_to_digest(made.start)
        if not line.startswith(same) or not same.endswith(wanted[0]):
            return None
        if is_of_revisit(same):
            return made if self._has_revisits and is_revisit(content) else None
        is_same = self._is_checked or is_base32_of(wanted[1], sha1(common_payload(content)).digest())
        return made if is_same else None


def common_payload(content: bytearray) -> memoryview:
    """The payload of a record that the compiled reader has made a line of."""
    block = content.find(_HEAD_END) + len(_HEAD_END)
    payload = content.find(_HEAD_END, block) + len(_HEAD_END)
    return memoryview(content)[payload:-_CLOSING]


def is_revisit(content: bytearray) -> bool:
    """Whether a record that the compiled reader has made a line of is a revisit, not just of its media type."""
    return b"\nwarc-type: revisit\r" in content[: content.find(_HEAD_END)].lower()
