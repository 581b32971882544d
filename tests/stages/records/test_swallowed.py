"""A record is truncated in its block, and its Content-Length happens to lead to the end of a later record."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

import pytest

from cdxmill.capture import Damage, Record
from cdxmill.stages.records import swallowed
from cdxmill.stages.records.read_records import read_records

END = b"\r\n\r\n"


def record(name: str, block: bytes, digest: bytes | None = None) -> bytes:
    sha1 = b"sha1:" + base64.b32encode(hashlib.sha1(block).digest()) if digest is None else digest
    field = b"WARC-Block-Digest: %b\r\n" % sha1 if sha1 else b""
    return (
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://%b.com/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:%b>\r\n%bContent-Length: %d\r\n\r\n%b\r\n\r\n"
        % (name.encode(), name.encode(), field, len(block), block)
    )


def read(data: bytes) -> tuple[list[int], list[int]]:
    """The offsets of records and of damage."""
    found = list(read_records(lambda pos, size: data[pos : pos + size]))
    records = [item.offset for item in found if isinstance(item, Record)]
    return records, [item.offset for item in found if isinstance(item, Damage)]


B, C, D = (record(name, name.encode() * 50) for name in "bcd")
BLOCK = b"some text\r\n" * 100


@pytest.mark.parametrize("inside", [B, B + C], ids=["one", "two"])
@pytest.mark.parametrize("closing", [0, len(END)])
@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "md5"])
def test_a_truncated_record_does_not_swallow_the_next_ones(
    inside: bytes, closing: int, algorithm: str
) -> None:
    digest = f"{algorithm}:{hashlib.new(algorithm, BLOCK).hexdigest()}".encode()
    whole = record("a", BLOCK, digest)
    cut = whole[: len(whole) - len(END) - len(inside) + len(END) - closing]
    records, damage = read(cut + inside + D)
    starts = [len(cut), len(cut) + len(B)] if inside != B else [len(cut)]
    assert records == [*starts, len(cut + inside)]
    assert damage == [0]


@pytest.mark.parametrize("payload", [B, B + C, B[: -len(END)], b"see:\n" + B, b"WARC/1.0\r\n" * 100])
def test_an_archive_inside_a_record_is_its_block(payload: bytes) -> None:
    for digest in (None, b"", b"crc:1"):
        data = record("a", payload, digest)
        assert read(data + D) == ([0, len(data)], [])


FORMS: dict[str, Callable[[bytes], str]] = {
    "hex": lambda found: found.hex(),
    "HEX": lambda found: found.hex().upper(),
    "base32": lambda found: base64.b32encode(found).decode(),
    "small base32": lambda found: base64.b32encode(found).decode().lower().rstrip("="),
    "base64": lambda found: base64.b64encode(found).decode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["Block", "Payload"])
@pytest.mark.parametrize("algorithm", ["sha1", "sha-256", "SHA512", "md5"])
def test_a_digest_may_be_written_in_all_ways_of_the_standard(algorithm: str, field: str, form: str) -> None:
    """That of the payload is that of the bytes after an HTTP head."""
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    hasher = algorithm.lower().replace("-", "")
    for inside, is_swallowed in ((B + C, False), (BLOCK + B, True)):
        hashed = (head if field == "Block" else b"") + (BLOCK if is_swallowed else inside)
        value = FORMS[form](hashlib.new(hasher, hashed).digest())
        whole = record("a", head + inside, f"{algorithm}:{value}".encode())
        whole = whole.replace(b"resource", b"response", 1).replace(b"Block-", field.encode() + b"-", 1)
        if is_swallowed:
            whole = whole[: -len(END)]  # its own closing is missing
        records, damage = read(whole + D)
        assert damage == ([0] if is_swallowed else [])
        assert records[0] == (whole.index(B) if is_swallowed else 0)


def test_records_that_do_not_lead_to_the_end_of_a_block_are_its_text() -> None:
    other = b"md5:" + b"0" * 32
    for inside in (
        B[:-1],
        B + b"x",
        B + b"\r\n",
        B[:-4] + END + b"more",
        b"WARC/1.0\r\n",
        B.replace(b"Length", b"X"),
    ):
        data = record("a", inside, other)
        assert read(data + D) == ([0, len(data)], []), inside


HTTP = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize("before", [b"", b"x", HTTP])
@pytest.mark.parametrize("inside", [B, B + C], ids=["one", "two"])
def test_the_next_record_may_begin_where_the_block_does(before: bytes, inside: bytes) -> None:
    whole = record("a", before + inside, b"md5:" + b"0" * 32).removesuffix(END)
    start = whole.index(inside)
    records, damage = read(whole + D)
    assert (records[0], damage) == (start, [0])


@pytest.mark.parametrize(
    ("before", "kind"), [(b"", b"resource"), (b"x", b"resource"), (HTTP, b"resource"), (HTTP, b"response")]
)
@pytest.mark.parametrize("field", [b"Block", b"Payload"])
def test_a_digest_that_is_right_proves_a_block_whose_last_record_has_no_closing(
    kind: bytes, field: bytes, before: bytes
) -> None:
    inside = B.removesuffix(END)
    hashed = inside if (field, kind) == (b"Payload", b"response") else before + inside
    for digest, is_right in ((hashlib.md5(hashed), True), (hashlib.md5(hashed + b"x"), False)):
        data = record("a", before + inside, b"md5:" + digest.hexdigest().encode())
        data = data.replace(b"resource", kind, 1).replace(b"Block-", field + b"-", 1)
        records, damage = read(data + D)
        assert damage == ([] if is_right else [0])
        assert records == ([0, len(data)] if is_right else [data.index(B[:20], 9), len(data)])


def test_other_bytes_than_line_ends_after_an_inner_record_prove_nothing() -> None:
    for end in (b"more", b"\r\n\r.", b"\n\r\n\r"):
        data = record("a", B.removesuffix(END) + end, b"md5:" + b"0" * 32).removesuffix(END)
        assert read(data + D) == ([0, len(data)], [])


@pytest.mark.parametrize(("most", "is_swallowed"), [(1, False), (2, True), (3, True)])
def test_a_chain_of_records_is_followed_up_to_a_limit(
    most: int, is_swallowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swallowed, "_MOST_STARTS", 1)
    monkeypatch.setattr(swallowed, "_MOST_RECORDS", most)
    data = record("a", B + C, b"md5:" + b"0" * 32).removesuffix(END)
    assert read(data + D)[1] == ([0] if is_swallowed else [])


@pytest.mark.parametrize(("starts", "is_swallowed"), [(2, False), (3, True)])
def test_the_first_starts_of_records_are_looked_at(
    starts: int, is_swallowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swallowed, "_MOST_STARTS", starts)
    data = record("a", b"WARC/1.0\r\n" * 2 + B, b"md5:" + b"0" * 32).removesuffix(END)
    assert read(data + D)[1] == ([0] if is_swallowed else [])
