"""The payload of a record, compared with the digest that its index line or its header has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdxmill.capture import Record
from cdxmill.stages.records.decode_payload import PayloadError, dechunk, decode_payload
from cdxmill.stages.records.payload_digest import base32, payload_start, sha1
from cdxmill.stages.records.record_parts import record_parts

_GIVEN_SHA1 = re.compile(r"(?:sha1:)?([A-Z2-7]{32})")
_HAS_PAYLOAD = frozenset((b"response", b"resource", b"metadata", b"conversion"))


def wrong_digest(record: Record, content: Iterator[bytes], digest: str) -> str | None:
    """How the payload differs from `digest`, the one of the index line; None if it does not, or cannot be compared.

    Only SHA-1 in base32 is compared. Crawlers hash the payload as it was sent, without its chunks, or decoded. A
    truncated payload (WARC-Truncated) may have the digest of the whole one.
    """
    found = _GIVEN_SHA1.fullmatch(digest)
    if found is None or record.headers.get(b"warc-type") not in _HAS_PAYLOAD:
        return None
    wanted = found[1].encode()
    if not record.headers.get(b"warc-payload-digest"):
        return None  # its capture has the SHA-1 of the payload, which was compared with the line
    block = record.block
    if len(block) == record.size:
        start = payload_start(record.headers, block)
        own = base32(sha1(memoryview(block)[start:]))
        if own == wanted or own == base32(sha1(memoryview(block))):
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
