"""Payloads are decoded as their HTTP heads say, or as far as they can be."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import brotli  # type: ignore[import-not-found, import-untyped, unused-ignore]
import pytest
import zstandard

from cdxmill.formats.archives.zstd_dictionary import dictionary_of
from cdxmill.stages.records.decode_payload import PayloadError, decode_body, decode_payload
from tests.material.payloads import ENCODED, PAYLOADS, TEXT, chunked, deflated


def decoded(fields: bytes, payload: bytes, size: int = 7) -> bytes:
    pieces = (payload[start : start + size] for start in range(0, len(payload), size))
    return b"".join(decode_payload(b"HTTP/1.1 200 OK\r\n%b\r\n" % fields, pieces))


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("size", [1, 5, 100_000])
def test_payloads_are_decoded_in_whatever_pieces_they_come(name: str, size: int) -> None:
    assert decoded(*ENCODED[name], size) == PAYLOADS[name]


@pytest.mark.parametrize("name", ENCODED)
def test_empty_pieces_change_nothing(name: str) -> None:
    fields, payload = ENCODED[name]
    pieces = (piece for byte in payload for piece in (b"", b"", bytes((byte,)), b""))
    assert b"".join(decode_payload(b"HTTP/1.1 200 OK\r\n%b\r\n" % fields, pieces)) == PAYLOADS[name]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("chunked", lambda data: data[:-200]),
        ("chunked", lambda data: data.replace(b"\r\n64\r\n", b"\r\n6x\r\n", 1)),
        ("chunked", lambda data: data.replace(b"\r\n64\r\n", b"\r\n63\r\n", 1)),
        ("gzip", lambda data: data[:-9]),
        ("gzip", lambda data: data[:-5] + b"\0" + data[-4:]),
        ("deflate", lambda data: data[:-9]),
        ("zstd", lambda data: data[:20] + b"\xff\xff\xff" + data[23:]),
    ],
)
def test_everything_before_the_corrupt_part_is_decoded_then_it_is_reported(
    name: str, change: Callable[[bytes], bytes]
) -> None:
    fields, payload = ENCODED[name]
    with pytest.raises(PayloadError, match=r"truncated|corrupt"):
        decoded(fields, change(payload))


@pytest.mark.parametrize(
    ("coding", "start"),
    [
        ("Transfer-Encoding: chunked", b""),
        ("Transfer-Encoding: chunked", b"3\r\nabc"),
        ("Transfer-Encoding: chunked", b"3\r\nabc\r\n"),
        ("Content-Encoding: gzip", b""),
        ("Content-Encoding: zstd", b""),
        ("Content-Encoding: br", b""),
        ("Content-Encoding: deflate", b"<p"),
    ],
)
def test_little_is_read_before_the_first_bytes_or_the_error(coding: str, start: bytes) -> None:
    """A payload that is not as its head says may be huge: it is not held in memory until that is known."""
    given = 0

    def pieces() -> Iterator[bytes]:
        nonlocal given
        yield start
        for _ in range(1_000):
            given += 1
            yield b"<html> no line end here " * 10

    found = decode_payload(f"HTTP/1.1 200 OK\r\n{coding}\r\n\r\n".encode(), pieces())
    with suppress(PayloadError):
        while given < 100 and (b"html" not in next(found)):
            pass
    assert given < 30


def test_deflate_without_a_header_may_begin_like_one_with_it() -> None:
    """A header has 8 in its first half byte, and is a multiple of 31. The others are no headers."""
    fields, numbers = b"Content-Encoding: deflate\r\n", range(400)
    texts = [b"%d" % number * 5 for number in numbers]
    starts = [int.from_bytes(deflated(text)[:2], "big") for text in texts]
    assert any(start % 31 == 0 for start in starts)
    for text in texts:
        assert decoded(fields, deflated(text)) == text
    stored = b"\x08\x04\x00\xfb\xfftext"  # with a bit that deflate skips
    assert decoded(fields, stored + deflated(b"!")) == b"text!"


TRUNCATED = {
    "gzip": (b"Content-Encoding: gzip\r\n", gzip.compress(TEXT), 1),
    "deflate": (b"Content-Encoding: deflate\r\n", zlib.compress(TEXT), 1),
    "bare deflate": (b"Content-Encoding: deflate\r\n", deflated(TEXT), 1),
    "zstd": (b"Content-Encoding: zstd\r\n", zstandard.compress(TEXT), 1),
    "brotli": (b"Content-Encoding: br\r\n", brotli.compress(TEXT), 1),
    "chunked": (b"Transfer-Encoding: chunked\r\n", chunked(TEXT), 4),
    "chunked brotli": (
        b"Transfer-Encoding: chunked\r\nContent-Encoding: br\r\n",
        chunked(brotli.compress(TEXT)),
        4,
    ),
}
"""Header fields, payload, and the number of bytes from which on the encoding can be recognized."""


@pytest.mark.parametrize("name", TRUNCATED)
def test_a_truncated_payload_is_never_taken_for_a_whole_one(name: str) -> None:
    fields, payload, least = TRUNCATED[name]
    for size in range(least, len(payload)):
        try:
            assert decoded(fields, payload[:size], 100) == TEXT, size  # only closing line ends are missing
            assert name.startswith("chunked")
            assert size >= len(payload) - 4
        except PayloadError as error:
            assert "truncated" in str(error) or "corrupt" in str(error)


def test_an_unknown_encoding_is_reported() -> None:
    with pytest.raises(PayloadError, match="unknown content encoding 'lzma'; omit --decode"):
        decoded(b"Content-Encoding: lzma\r\n", TEXT)


BROTLI = """
import sys
if sys.argv[1] == "absent":
    sys.modules["brotli"] = None
from cdxmill.stages.records.decode_payload import decode_payload
head = b"HTTP/1.1 200 OK\\r\\nContent-Encoding: br\\r\\n\\r\\n"
for body in (bytes.fromhex("0b0280" + b"hello".hex() + "03"), b"<p>hello</p>"):
    print(b"".join(decode_payload(head, iter([body[:4], body[4:]]))))
"""


@pytest.mark.parametrize("which", ["there", "absent"])
def test_brotli_is_decoded_if_it_is_installed_and_reported_otherwise(which: str) -> None:
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", BROTLI, which], env=env, capture_output=True, text=True, check=False
    )
    if which == "there":
        assert done.stdout == "b'hello'\nb'<p>hello</p>'\n", done.stderr
    else:
        assert "brotli is not installed" in done.stderr


@pytest.mark.parametrize(("log", "is_read"), [(23, True), (24, False)])
def test_a_payload_does_not_choose_how_much_memory_is_taken(log: int, is_read: bool) -> None:
    """HTTP allows a window of 8 MiB (RFC 9659)."""
    packed = with_window(log)
    if is_read:
        assert decoded(b"Content-Encoding: zstd\r\n", packed) == b"x" * 1000
    else:
        with pytest.raises(PayloadError, match="too much memory"):
            decoded(b"Content-Encoding: zstd\r\n", packed)


def test_a_dictionary_does_not_choose_how_much_memory_is_taken() -> None:
    dictionary_of(bytes(8) + with_window(27))
    with pytest.raises(zstandard.ZstdError, match="too much memory"):
        dictionary_of(bytes(8) + with_window(28))


def with_window(log: int) -> bytes:
    """A frame of 1000 bytes that asks for a window of 2**log bytes."""
    parameters = zstandard.ZstdCompressionParameters(window_log=log)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(b"x" * 1000) + compressor.flush()


def salvaged(fields: bytes, pieces: list[bytes]) -> bytes:
    """What is decoded before the error."""
    found = b""
    with pytest.raises(PayloadError, match="corrupt"):
        for piece in decode_payload(b"HTTP/1.1 200 OK\r\n%b\r\n" % fields, iter(pieces)):
            found += piece
    return found


WBITS = {"gzip": 31, "deflate": 15, "bare deflate": -15}
DAMAGE = b"\x07 no deflate block starts like this"
TEXTS = {
    "nothing": b"",
    "short": b"a page",
    "some steps": b"".join(b"%x" % (number * number) for number in range(9000)),
    "some pieces": bytes(700_000) + b"the end",
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", WBITS)
def test_what_comes_before_an_error_is_kept_to_the_byte(name: str, text: str) -> None:
    """Nothing is given twice, and nothing is missing."""
    packer, whole = zlib.compressobj(wbits=WBITS[name]), TEXTS[text]
    packed = packer.compress(whole) + packer.flush(zlib.Z_SYNC_FLUSH)
    fields = b"Content-Encoding: %b\r\n" % name.split()[-1].encode()
    for more in (0, 1, 300, 5000):
        assert salvaged(fields, [packed + DAMAGE + b"x" * more]) == whole
    for damage in (DAMAGE, gzip.compress(whole + b"more")):
        assert salvaged(fields, [packed, damage]) == whole


@pytest.mark.parametrize(
    ("head", "payload", "data", "problem"),
    [
        ("", b"as it is", b"as it is", ""),
        ("Content-Encoding: lzma\r\n", b"x", b"x", "unknown content encoding 'lzma', taken as none"),
        (
            "Content-Encoding: gzip, lzma\r\n",
            gzip.compress(b"x", mtime=0),
            b"x",
            "unknown content encoding 'lzma'",
        ),
        ("Content-Encoding: identity,\r\nTransfer-Encoding: none\r\n", b"x", b"x", ""),
        (
            "Content-Encoding: gzip\r\nContent-Encoding: deflate\r\n",
            zlib.compress(gzip.compress(b"x", mtime=0)),
            b"x",
            "",
        ),
        ("Content-Encoding: deflate,\r\n gzip\r\n", gzip.compress(zlib.compress(b"x"), mtime=0), b"x", ""),
        ("Transfer-Encoding: chunked\r\n", b"1\r\nx\r\n9\r\nabc", b"xabc", "6 bytes of a chunk are missing"),
        ("Transfer-Encoding: chunked\r\n", b"1\nx\n0\n\n", b"x", ""),
        ("Transfer-Encoding: chunked\r\n", b" 1 ;a=b\r\nx\r\n0\r\n", b"x", ""),
        ("Transfer-Encoding: chunked\r\n", b"1\r\nx", b"x", "a chunk does not end after its length"),
        ("Transfer-Encoding: chunked\r\n", b"1\r\nx\r\n", b"x", "truncated or corrupt"),
        ("Content-Encoding: gzip\r\n", gzip.compress(b"x" * 99, mtime=0)[:-1], b"x" * 99, "truncated"),
        ("Content-Encoding: gzip\r\n", b"\x1f", b"", "truncated"),
        ("Content-Encoding: zstd\r\n", b"\x28\xb5", b"", "truncated"),
        ("Content-Encoding: zstd\r\n", zstandard.compress(b"x") * 2 + b"more", b"xx", ""),
        ("Content-Encoding: zstd\r\n", zstandard.compress(b"x" * 99)[:-1], b"", "truncated"),
        ("Content-Encoding: br\r\n", brotli.compress(b"x" * 99)[:-1], b"", "truncated"),
        ("Content-Encoding: br\r\n", b"", b"", ""),
        ("Content-Encoding: br\r\n", b"<p>no brotli", b"<p>no brotli", ""),
    ],
)
def test_a_body_is_decoded_as_far_as_it_can_be(head: str, payload: bytes, data: bytes, problem: str) -> None:
    body = decode_body(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode(), payload)
    assert body.data == data
    assert problem in body.problem
    assert bool(problem) == bool(body.problem)


@pytest.mark.parametrize(("limit", "is_cut"), [(1000, False), (999, True)])
@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd", "br", "chunked"])
def test_a_body_has_a_largest_size(name: str, limit: int, is_cut: bool) -> None:
    text = b"x" * 1000
    packed = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "zstd": zstandard.compress,
        "br": brotli.compress,
        "chunked": chunked,
    }[name](text)
    field = "Transfer" if name == "chunked" else "Content"
    body = decode_body(f"HTTP/1.1 200 OK\r\n{field}-Encoding: {name}\r\n\r\n".encode(), packed, limit)
    assert body == (text[:limit], f"the decoded body is larger than {limit} bytes" if is_cut else "")


def test_brotli_may_begin_with_empty_pieces() -> None:
    packed = brotli.compress(TEXT)
    pieces = iter([b"", packed[:9], b"", packed[9:]])
    assert b"".join(decode_payload(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n", pieces)) == TEXT


def test_brotli_that_becomes_corrupt_is_reported() -> None:
    packed = brotli.compress(os.urandom(5000))
    assert salvaged(b"Content-Encoding: br\r\n", [packed[:100], b"\xff" * 9000]) is not None
