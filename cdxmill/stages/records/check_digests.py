"""The digests in a record's own header, WARC-Block-Digest and WARC-Payload-Digest, compared with its bytes as they pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from cdxmill.capture import CrawlNotes, Damage, Headers, Note, Outcome, Record
from cdxmill.formats.archives.http_head import parse_http_head
from cdxmill.formats.archives.warc_header import MAX_HEADER, parse_warc_header
from cdxmill.stages.records.claims import Claim, parse_claim
from cdxmill.stages.records.decode_payload import PayloadError, dechunk, decode_payload
from cdxmill.stages.records.read_contents import Content, contents_between
from cdxmill.stages.records.record_parts import BLOCK_HEAD, payload_start
from cdxmill.stages.records.take_record import ReadCommon
from cdxmill.stages.window import ReadAt

if TYPE_CHECKING:
    from hashlib import _Hash

_HEAD = MAX_HEADER + BLOCK_HEAD
"""Bytes that contain the header and the HTTP head of every record that has them."""
_BLOCK, _PAYLOAD = b"warc-block-digest", b"warc-payload-digest"
_ARC, _WARC = "arc", b"WARC/"
_HINT = "compare it with another copy; index without --check-digests if the crawler wrote wrong digests"

_MOST_DECODED = 4 << 30
"""Bytes that are hashed in another way than they lie. A bomb of some megabytes could take hours."""

Common = TypeVar("Common")


class SeenDigests(NamedTuple):
    """What was found out about a record: its type, `arc` for one of an ARC file; how many digests were checked.

    `wrong` says which digest is not that of the bytes, `headers` are those of a WARC record.
    """

    kind: str
    checked: int = 0
    wrong: str = ""
    headers: Headers = {}  # noqa: RUF012 - nobody changes it


class _Sum:
    """A claim, and the hash of a range of the record's bytes."""

    def __init__(self, claim: Claim, start: int, end: int) -> None:
        import hashlib  # slow to import, and most commands check no digests

        self.claim, self._start, self._end = claim, start, end
        self._hash: _Hash = hashlib.new(claim.algorithm, usedforsecurity=False)

    def add(self, piece: memoryview, pos: int) -> None:
        """Add the part of `piece`, which begins at `pos` of the record."""
        part = piece[max(self._start - pos, 0) : max(self._end - pos, 0)]
        if part:
            self._hash.update(part)

    def digest(self) -> bytes:
        """The digest of the range."""
        return self._hash.digest()


class ContentCheck:
    """Checks the digests of one content. Feed it all bytes, then ask `seen`."""

    def __init__(self) -> None:
        self._held: bytearray | None = bytearray()
        self._pos, self._kind, self._start, self._payload, self._size = 0, _ARC, 0, 0, 0
        self._headers: Headers = {}
        self._sums: list[_Sum] = []

    def feed(self, piece: bytes | bytearray) -> None:
        """Add bytes."""
        if self._held is None:
            self._add(piece)
            return
        self._held += piece
        if len(self._held) >= _HEAD:
            self.feed_whole(self._held)

    def feed_whole(self, data: bytes | bytearray) -> None:
        """Begin with bytes that contain the header and the HTTP head."""
        self._held = None
        if data.startswith(_WARC):
            try:
                self._read_header(data)
            except ValueError:  # the reader took it for a record; it has no digest that can be read
                self._kind = "unknown"
        self._add(data)

    def seen(self, pieces: Callable[[], Iterator[bytes]]) -> SeenDigests:
        """The result. `pieces` gives all bytes once more, if a digest is not that of the bytes as they are."""
        if self._held is not None:
            self.feed_whole(self._held)
        wrong = ""
        for one in self._sums:
            own = one.digest()
            if not one.claim.is_of(own) and not self._is_decoded(one.claim, pieces):
                claim = one.claim
                wrong = (
                    f"{claim.field} is {claim.algorithm}:{claim.value[:130]}, but the bytes have {own.hex()}"
                )
                break
        return SeenDigests(self._kind, len(self._sums), wrong, self._headers)

    def _read_header(self, data: bytes | bytearray) -> None:
        headers, start = parse_warc_header(data)
        size = int(headers[b"content-length"])
        self._kind, self._headers = headers.get(b"warc-type", b"unknown").decode("latin-1"), headers
        self._start, self._size = start, size
        claim = parse_claim("WARC-Block-Digest", headers.get(_BLOCK))
        if claim is not None:
            self._sums.append(_Sum(claim, start, start + size))
        claim = parse_claim("WARC-Payload-Digest", headers.get(_PAYLOAD))
        if claim is not None and _has_payload(headers):
            head = bytes(data[start : start + min(size, BLOCK_HEAD)])
            self._payload = _payload_start(headers, head)
            self._sums.append(_Sum(claim, start + self._payload, start + size))

    def _add(self, piece: bytes | bytearray) -> None:
        view = memoryview(piece)
        for one in self._sums:
            one.add(view, self._pos)
        self._pos += len(piece)

    def _is_decoded(self, claim: Claim, pieces: Callable[[], Iterator[bytes]]) -> bool:
        """Whether a payload has the digest without its chunks, decoded, or as the whole block, as some crawlers compute it."""
        if claim.field != "WARC-Payload-Digest":
            return False
        end = self._start + self._size
        head = b"".join(_between(pieces(), self._start, self._start + self._payload))

        def payload() -> Iterator[bytes]:
            return _between(pieces(), self._start + self._payload, end)

        ways: tuple[Callable[[], Iterable[bytes]], ...] = (
            lambda: _between(pieces(), self._start, end),
            lambda: dechunk(payload()),
            lambda: decode_payload(head, payload()),
        )
        return any(claim.is_of(digest) for digest in map(claim_hasher(claim), ways) if digest)


def claim_hasher(claim: Claim) -> Callable[[Callable[[], Iterable[bytes]]], bytes]:
    """A function that hashes pieces as a claim does; b"" if they cannot be decoded, or get too large."""
    import hashlib

    def hashed(pieces: Callable[[], Iterable[bytes]]) -> bytes:
        digest, size = hashlib.new(claim.algorithm, usedforsecurity=False), 0
        try:
            for piece in pieces():
                digest.update(piece)
                size += len(piece)
                if size > _MOST_DECODED:
                    return b""
        except PayloadError:
            return b""
        return digest.digest()

    return hashed


def _payload_start(headers: Headers, head: bytes) -> int:
    """Where the payload begins. Some crawlers write HTTP messages of other URLs, such as file:///screenshot.png."""
    if headers.get(b"content-type", b"").lower().startswith(b"application/http"):
        return parse_http_head(head).end
    return payload_start(headers, head)


def _has_payload(headers: Headers) -> bool:
    """Whether the digest of the payload is that of the bytes in this record: not of another one, or of more bytes."""
    is_part = b"warc-truncated" in headers or b"warc-segment-number" in headers
    return headers.get(b"warc-type") != b"revisit" and not is_part


def _between(pieces: Iterator[bytes], start: int, end: int) -> Iterator[bytes]:
    pos = 0
    for piece in pieces:
        part = piece[max(start - pos, 0) : end - pos]
        if part:
            yield part
        pos += len(piece)
        if pos >= end:
            return


def seen_in(content: Content) -> SeenDigests:
    """Read a content, and check its digests."""
    check = ContentCheck()
    if content.data is not None:
        check.feed_whole(content.data)
    else:
        for piece in content.stream():
            check.feed(piece)
    return check.seen(content.pieces)


def watched(
    content: Content, done: Callable[[SeenDigests], object], add: Callable[[bytes | bytearray], object]
) -> Content:
    """The content. `add` gets its bytes, and `done` what was found when the last one was read. Requires: it is read once.

    Bytes in memory are read now.
    """
    check = ContentCheck()
    if content.data is not None:
        add(content.data)
        check.feed_whole(content.data)
        done(check.seen(content.pieces))
        return content

    def pieces() -> Iterator[bytes]:
        for piece in content.stream():
            add(piece)
            check.feed(piece)
            yield piece
        done(check.seen(content.stream))

    return content._replace(stream=pieces)


class DigestChecks(Generic[Common]):
    """Checks the records that `read_records` reads of an archive. One that does not have its digest becomes Damage.

    `inner` reads common records. Give `read_common` to `read_records`, and its result to `checked`. A content that is not
    read as a whole is read once more.
    """

    def __init__(self, read_at: ReadAt, chunk: int, inner: ReadCommon[Common] | None) -> None:
        self._contents, self._inner = contents_between(read_at, chunk), inner
        self._checked = -1

    def read_common(
        self, data: bytearray | bytes, offset: int, length: int
    ) -> Common | CrawlNotes | Damage | Outcome:
        """Check a content, and then read it."""
        seen = seen_in(Content(offset, length, len(data), data))
        if seen.wrong:
            return Damage(offset, seen.wrong, _HINT)
        self._checked = offset
        return Outcome.NOT_COMMON if self._inner is None else self._inner(data, offset, length)

    def checked(
        self, items: Iterable[Record | Common | CrawlNotes | Damage | Note]
    ) -> Iterator[Record | Common | CrawlNotes | Damage | Note]:
        """The items, of which the last ones are checked that were not given to `read_common`."""
        for item in items:
            if isinstance(item, Record) and item.offset != self._checked:
                found = map(seen_in, self._contents(item.offset, item.offset + item.length))
                if wrong := next((seen.wrong for seen in found), ""):
                    yield Damage(item.offset, wrong, _HINT)
                    continue
            yield item
