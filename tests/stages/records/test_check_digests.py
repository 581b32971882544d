"""The digests of a record are compared with its bytes, in whatever pieces these come."""

from __future__ import annotations

import base64
import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator

import pytest

from cdxmill.capture import Damage, Outcome, Record
from cdxmill.stages.records import check_digests
from cdxmill.stages.records.check_digests import (
    ContentCheck,
    DigestChecks,
    SeenDigests,
    seen_in,
    watched,
)
from cdxmill.stages.records.claims import parse_claim
from cdxmill.stages.records.read_contents import Content
from cdxmill.stages.records.read_records import read_records

from ...material.payloads import chunked

HEAD = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"
PAGE = b"<p>a page" * 99


def sha1(data: bytes) -> bytes:
    return b"sha1:" + base64.b32encode(hashlib.sha1(data).digest())


def record(block: bytes, *fields: bytes, kind: bytes = b"response", url: bytes = b"http://a.b/") -> bytes:
    lines = b"".join(b"%b\r\n" % field for field in fields)
    head = b"WARC/1.0\r\nWARC-Type: %b\r\nWARC-Target-URI: %b\r\n%bContent-Length: %d\r\n\r\n"
    return head % (kind, url, lines, len(block)) + block + b"\r\n\r\n"


def of_block(data: bytes) -> bytes:
    return b"WARC-Block-Digest: " + sha1(data)


def of_payload(data: bytes) -> bytes:
    return b"WARC-Payload-Digest: " + sha1(data)


def content_of(data: bytes, size: int) -> Content:
    """A content in pieces; in memory if they have no size."""
    if not size:
        return Content(0, len(data), len(data), data)
    return Content(0, len(data), len(data), None, lambda: pieces_of(data, size))


def pieces_of(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


FEED = b"Content-Type: application/http; msgtype=response"
CASES: dict[str, tuple[bytes, int, str]] = {
    "none": (record(HEAD + PAGE), 0, ""),
    "both": (record(HEAD + PAGE, of_block(HEAD + PAGE), of_payload(PAGE)), 2, ""),
    "block": (record(HEAD + PAGE, of_block(PAGE), of_payload(PAGE)), 2, "WARC-Block-Digest"),
    "a block is not decoded": (record(HEAD + chunked(PAGE), of_block(HEAD + PAGE)), 1, "WARC-Block-Digest"),
    "both are wrong": (record(HEAD + PAGE, of_block(PAGE), of_payload(HEAD)), 2, "WARC-Block-Digest"),
    "payload": (record(HEAD + PAGE, of_block(HEAD + PAGE), of_payload(b"")), 2, "WARC-Payload-Digest"),
    "payload of the block": (record(HEAD + PAGE, of_payload(HEAD + PAGE)), 1, ""),
    "without chunks": (record(HEAD + chunked(PAGE), of_payload(PAGE)), 1, ""),
    "with chunks": (record(HEAD + chunked(PAGE), of_payload(chunked(PAGE))), 1, ""),
    "decoded": (
        record(HEAD.replace(b"Server: x", b"Content-Encoding: gzip") + gzip.compress(PAGE, mtime=0), of_payload(PAGE)),
        1,
        "",
    ),
    "decoded to another": (
        record(HEAD.replace(b"Server: x", b"Content-Encoding: gzip") + gzip.compress(PAGE, mtime=0), of_payload(b"")),
        1,
        "WARC-Payload-Digest",
    ),
    "not decodable": (
        record(HEAD.replace(b"Server: x", b"Content-Encoding: x") + PAGE, of_payload(b"")),
        1,
        "WARC-Payload-Digest",
    ),
    "damaged before the end": (
        record(HEAD.replace(b"Server: x", b"Content-Encoding: gzip") + gzip.compress(PAGE)[:-9], of_payload(PAGE)),
        1,
        "WARC-Payload-Digest",
    ),
    "nothing": (
        record(HEAD.replace(b"Server: x", b"Content-Encoding: x") + PAGE, b"WARC-Payload-Digest: sha1:="),
        1,
        "WARC-Payload-Digest",
    ),
    "resource": (record(PAGE, of_payload(PAGE), kind=b"resource"), 1, ""),
    "resource like a message": (record(HEAD + PAGE, of_payload(HEAD + PAGE), kind=b"resource"), 1, ""),
    "message of another URL": (
        record(HEAD + PAGE, FEED, of_payload(PAGE), kind=b"resource", url=b"file:///a.png"),
        1,
        "",
    ),
    "revisit": (record(HEAD, of_block(HEAD), of_payload(b""), kind=b"revisit"), 1, ""),
    "truncated": (record(HEAD, b"WARC-Truncated: length", of_payload(b"x")), 0, ""),
    "segment": (record(HEAD, b"WARC-Segment-Number: 1", of_payload(b"x")), 0, ""),
    "no type": (record(HEAD, of_block(HEAD)).replace(b"WARC-Type", b"X"), 1, ""),
    "ARC": (b"http://a.b/ 1.2.3.4 20240101000000 text/plain 1\nx\n", 0, ""),
    "odd": (b"WARC/1.0\r\nWARC-Block-Digest: %b\r\nContent-Length: x\r\n\r\nx\r\n\r\n" % sha1(b""), 0, ""),
    "cut": (b"WARC/1.0\r\nWARC-Type", 0, ""),
}  # fmt: skip
KINDS = {"ARC": "arc", "odd": "unknown", "cut": "unknown", "no type": "unknown", "revisit": "revisit"}


@pytest.mark.parametrize("size", [0, 1, 64, 1 << 20])
@pytest.mark.parametrize("name", CASES)
def test_which_digests_are_compared_and_which_is_wrong(name: str, size: int) -> None:
    data, number, wrong = CASES[name]
    seen = seen_in(content_of(data, size))
    assert (seen.checked, seen.wrong.partition(" is sha1:")[0]) == (number, wrong)
    assert bool(wrong) == ("but the bytes have " in seen.wrong)
    kind = "resource" if b"Type: resource" in data else "response"
    assert seen.kind == KINDS.get(name, kind)


@pytest.mark.parametrize("name", CASES)
def test_a_content_that_is_watched_passes_unchanged(name: str) -> None:
    data, number, wrong = CASES[name]
    for size in (0, 100):
        found: list[SeenDigests] = []
        taken = bytearray()
        content = watched(content_of(data, size), found.append, taken.extend)
        assert (len(found), bytes(taken)) == ((0, b"") if size else (1, data))
        assert b"".join(content.pieces()) == data == taken
        ((_, checked, told, _),) = found
        assert (checked, bool(told)) == (number, bool(wrong))


def test_a_large_record_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its header and HTTP head are found in its first bytes."""
    monkeypatch.setattr(check_digests, "_HEAD", 300)
    data = record(HEAD + PAGE, of_block(HEAD + PAGE), of_payload(PAGE))
    check = ContentCheck()
    for piece in pieces_of(data, 30):
        check.feed(piece)
    assert check.seen(lambda: iter((data,)))[:3] == ("response", 2, "")


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("name", CASES)
def test_a_record_in_many_pieces_is_compared_like_one_in_memory(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what follows its block, nothing is hashed; and it is read a second time only if a digest is another one."""
    monkeypatch.setattr(check_digests, "_HEAD", 300)
    data, number, wrong = CASES[name]
    check = ContentCheck()
    for piece in pieces_of(data, size):
        check.feed(piece)
    assert (check._held is None) == (len(data) >= 300)
    again: list[int] = []

    def pieces() -> Iterator[bytes]:
        again.append(size)
        return pieces_of(data, size)

    seen = check.seen(pieces)
    assert (seen.checked, seen.wrong.partition(" is sha1:")[0]) == (number, wrong)
    is_as_it_is = not number or name in ("both", "with chunks", "resource", "no type", "revisit")
    is_block = wrong == "WARC-Block-Digest"
    is_message = name in ("resource like a message", "message of another URL")
    assert bool(again) != (is_as_it_is or is_block or is_message)


def test_a_payload_that_gets_too_large_when_it_is_decoded_is_not_hashed_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = HEAD.replace(b"Server: x", b"Content-Encoding: deflate")
    data = record(head + zlib.compress(PAGE), of_payload(PAGE))
    for most, wrong in ((len(PAGE), False), (len(PAGE) - 1, True)):
        monkeypatch.setattr(check_digests, "_MOST_DECODED", most)
        assert bool(seen_in(content_of(data, 0)).wrong) == wrong


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        (None, None),
        (b"", None),
        (b"sha1", None),
        (b"sha1:", None),
        (b"crc32:00", None),
        (b"sha1:a b", None),
        (b" sha1:AB ", ("sha1", "AB")),
        (b"SHA-256:ab", ("sha256", "ab")),
        (b"urn:sha1:AB", ("sha1", "AB")),
        (b"sha1:a:b", ("sha1", "a:b")),
    ],
)
def test_what_a_field_claims(text: bytes | None, claim: tuple[str, str] | None) -> None:
    found = parse_claim("f", text)
    assert found == (claim and ("f", *claim))


def test_a_message_quotes_no_more_than_a_digest() -> None:
    seen = seen_in(content_of(record(HEAD, b"WARC-Block-Digest: md5:" + b"x" * 999), 0))
    assert seen.wrong.startswith("WARC-Block-Digest is md5:" + "x" * 130 + ", but the bytes have ")
    assert seen.wrong.endswith(hashlib.md5(HEAD).hexdigest())


@pytest.mark.parametrize("to_unit", [bytes, lambda data: gzip.compress(data, 0)], ids=["plain", "gz"])
@pytest.mark.parametrize("inner", [None, lambda *_: Outcome.NOT_COMMON, lambda *_: Outcome.NO_LINE])
def test_each_record_of_an_archive_is_checked_whoever_reads_it(
    to_unit: Callable[[bytes], bytes], inner: Callable[..., Outcome] | None
) -> None:
    good, bad = record(PAGE, of_block(PAGE)), record(PAGE, of_block(b""))
    large = record(PAGE * 20_000, of_block(b"x"))  # 18 MB: no unit of this size is read as a whole
    data = b"".join(map(to_unit, (good, bad, good, large, good)))

    def read_at(offset: int, size: int) -> bytes:
        return data[offset : offset + size]

    checks: DigestChecks[Outcome] = DigestChecks(read_at, 1 << 20, inner)
    found = list(checks.checked(read_records(read_at, chunk=1 << 20, read_common=checks.read_common)))
    damage = [one.offset for one in found if isinstance(one, Damage)]
    assert damage == [len(to_unit(good)), 2 * len(to_unit(good)) + len(to_unit(bad))]
    records = [one for one in found if isinstance(one, Record)]
    is_taken = to_unit is not bytes and inner is not None and inner() is Outcome.NO_LINE
    assert len(records) == (0 if is_taken else 3)


@pytest.mark.parametrize("to_unit", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_record_is_read_again_only_if_it_was_not_read_as_a_whole(to_unit: Callable[[bytes], bytes]) -> None:
    good, bad = record(PAGE, of_block(PAGE)), record(PAGE, of_block(b""))
    units = [to_unit(one) for one in (good, bad, good, bad, good)]
    data, reads = b"".join(units), list[int]()

    def again(offset: int, size: int) -> bytes:
        reads.append(offset)
        return data[offset : offset + size]

    checks: DigestChecks[Outcome] = DigestChecks(again, 1 << 20, None)
    items = read_records(lambda pos, size: data[pos : pos + size], read_common=checks.read_common)
    found = list(checks.checked(items))
    starts = [sum(map(len, units[:number])) for number in range(5)]
    assert [item.offset for item in found if isinstance(item, Record)] == starts[::2]
    damage = [item for item in found if isinstance(item, Damage)]
    assert [item.offset for item in damage] == starts[1::2]
    assert all(item.reason.startswith("WARC-Block-Digest is sha1:") for item in damage)
    assert bool(reads) == (to_unit is bytes)
