"""Which reads a window makes, what it says of a corrupt gzip member, and the SHA-256 of a file that is read in any order."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import struct
import sys
import zlib

import pytest

from cdxmill.formats.archives.framing import MAX_HEADER
from cdxmill.stages import window as window_module
from cdxmill.stages.window import (
    CHUNK,
    LOCAL_CHUNK,
    MemberError,
    SummedReads,
    Window,
    WindowFile,
    chunk_of,
    inflate,
    inflate_start,
)


class File:
    """A file whose reads are noted."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def __call__(self, offset: int, size: int) -> bytes:
        self.reads.append((offset, size))
        return self.data[offset : offset + size]


DATA = bytes(random.Random(7).randbytes(1000))


def test_reads_grow_up_to_the_limit_and_read_no_byte_twice() -> None:
    for most, sizes in ((0, [10] * 5), (10, [10] * 5), (100, [10, 40, 100, 100, 100]), (160, [10, 40, 160, 160, 160])):  # fmt: skip
        file = File(DATA)
        window = Window(file, 10, most)
        for offset in range(600):
            window.get(offset, 1)
        assert [size for _, size in file.reads[:5]] == sizes
        assert all(
            one[0] + one[1] == other[0] for one, other in zip(file.reads, file.reads[1:], strict=False)
        )


def test_a_read_has_what_is_asked_for_and_not_what_is_known() -> None:
    file = File(DATA)
    window = Window(file, 10)
    assert window.get(100, 50) == DATA[100:150]
    assert window.get(120, 30) == DATA[120:150]
    assert window.get(100, 50) == DATA[100:150]
    assert window.get(140, 30) == DATA[140:170]
    assert window.get(175, 5) == DATA[175:180]
    assert window.get(90, 5) == DATA[90:95]
    assert file.reads == [(100, 50), (150, 20), (175, 10), (90, 10)]
    assert window.at(95, 5) == (DATA[90:100], 5)
    assert window.at(100, 0) == (DATA[90:100], 10)
    assert len(file.reads) == 4


def test_nothing_is_read_behind_the_known_end() -> None:
    file = File(DATA)
    window = Window(file, 2000)
    assert window.get(900, 500) == DATA[900:]
    for offset, size in ((900, 2000), (1000, 1), (1001, 1), (5000, 9), (999, 2), (1000, 0)):
        assert window.get(offset, size) == window.peek(offset, size) == DATA[offset : offset + size]
    assert window.end() == 1000
    assert file.reads == [(900, 2000)]
    assert window.get(10, 5) == DATA[10:15]
    assert window.end() == 1000


def test_a_peek_does_not_move_the_window() -> None:
    file = File(DATA)
    window = Window(file, 10)
    window.get(100, 10)
    assert window.peek(100, 10) == DATA[100:110]
    assert window.peek(105, 5) == DATA[105:110]
    assert len(file.reads) == 1
    for offset, size in ((99, 2), (105, 6), (110, 1), (995, 10), (1000, 4)):
        assert window.peek(offset, size) == DATA[offset : offset + size]
    assert len(file.reads) == 6
    assert window.get(100, 10) == DATA[100:110]
    assert len(file.reads) == 6


@pytest.mark.parametrize("size", [0, 1, 2, 9, 10, 11, 20, 21, 999, 1000])
@pytest.mark.parametrize("read", [0, 1, 10])
def test_the_end_of_a_file_is_found_in_few_reads(size: int, read: int) -> None:
    file = File(DATA[:size])
    window = Window(file, 10)
    window.get(0, read)
    before = len(file.reads)
    assert window.end() == window.end() == size
    assert len(file.reads) - before <= 20
    assert all(one[1] == 1 for one in file.reads[before:])


@pytest.mark.parametrize("size", [0, 1, 100, 101, 250, 1000, 2000])
def test_a_range_comes_in_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "_RANGE_PIECE", 100)
    pieces = list(Window(File(DATA), 10).pieces(5, size))
    assert b"".join(pieces) == DATA[5 : 5 + size]
    assert all(len(piece) == 100 for piece in pieces[:-1])
    assert all(pieces)


def test_a_range_is_read_as_a_file() -> None:
    file = WindowFile(Window(File(DATA), 10), 5, 105)
    assert [file.read(7), file.read(0), file.read(60), file.read(), file.read(), file.read(9)] == [
        DATA[5:12],
        b"",
        DATA[12:72],
        DATA[72:105],
        b"",
        b"",
    ]
    cut = WindowFile(Window(File(DATA), 10), 990, 1100)
    assert (cut.read(50), cut.read(), cut.read(1)) == (DATA[990:], b"", b"")


def test_local_files_are_read_in_smaller_pieces() -> None:
    assert (chunk_of(True), chunk_of(False)) == (CHUNK, LOCAL_CHUNK)


@pytest.mark.parametrize("seed", range(20))
def test_the_sum_of_a_file_is_that_of_all_its_bytes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "_PIECE", 64)
    rng, file = random.Random(seed), File(DATA)
    reads = SummedReads(file)
    for _ in range(rng.randrange(30)):
        offset, size = rng.randrange(1010), rng.randrange(300)
        before = reads.size
        assert reads(offset, size) == DATA[offset : offset + size]
        end = min(offset + size, len(DATA))
        assert reads.size == (end if offset <= before < end else before)
        assert reads.sha256_so_far() == hashlib.sha256(DATA[: reads.size]).hexdigest()
    del file.reads[:]
    rest = len(DATA) - reads.size
    assert reads.sha256() == hashlib.sha256(DATA).hexdigest()
    assert reads.size == len(DATA)
    assert len(file.reads) == -(-rest // 64) + 1


def member_of(content: bytes, extra: bytes = b"", name: bytes = b"") -> bytes:
    out = io.BytesIO()
    out.write(b"\x1f\x8b\x08" + bytes([4 * bool(extra) + 8 * bool(name)]) + bytes(6))
    out.write((struct.pack("<H", len(extra)) + extra if extra else b"") + (name + b"\0" if name else b""))
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    out.write(packer.compress(content) + packer.flush())
    out.write(struct.pack("<II", zlib.crc32(content), len(content)))
    return out.getvalue()


CONTENT = b"".join(b"some line %d\n" % number for number in range(400))


def inflated(data: bytes, offset: int = 2) -> MemberError:
    with pytest.raises(MemberError) as error:
        b"".join(inflate(Window(File(b"xy" + data), 50), offset))
    return error.value


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0x01
    return bytes(changed)


@pytest.mark.parametrize("library", ["isal", "zlib"])
def test_what_is_wrong_with_a_member_is_reported(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    good = gzip.compress(CONTENT)
    end = 2 + len(good)
    for at, reason in ((-8, "gzip CRC32 mismatch"), (-5, "gzip CRC32 mismatch"), (-4, "gzip length mismatch (ISIZE)"), (-1, "gzip length mismatch (ISIZE)")):  # fmt: skip
        error = inflated(flipped(good, at) + b"more")
        assert (str(error), error.reached, error.ended, error.truncated) == (reason, end, True, False)
    error = inflated(good[:10] + b"\xff" * 99)
    assert str(error).startswith("corrupt gzip data (")
    assert not str(error).lower().startswith("corrupt gzip data (error")
    assert (error.ended, error.truncated, error.hint) == (False, False, "")
    cuts = {
        5: "header",
        10: "member",
        len(good) // 2: "member",
        len(good) - 8: "trailer",
        len(good) - 1: "trailer",
    }
    for size, part in cuts.items():
        error = inflated(good[:size])
        assert str(error) == f"the file is truncated inside a gzip {part}"
        assert (error.reached, error.truncated, error.ended) == (2 + size, True, False)


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"PK" + bytes(99), "gzip"), (b"\x1f\x8b\x07" + bytes(99), "gzip"), (b"\x1f\x8b\x08\xff" + bytes(99), "gzip")],
)  # fmt: skip
def test_what_is_no_member_is_reported_where_it_starts(data: bytes, reason: str) -> None:
    error = inflated(data)
    assert reason in str(error)
    assert (error.reached, error.truncated) == (2, False)


def test_a_header_has_a_limit() -> None:
    name = b"n" * (MAX_HEADER - 11)
    window = Window(File(b"xy" + member_of(CONTENT, name=name)), 50)
    assert b"".join(inflate(window, 2)) == CONTENT
    error = inflated(member_of(CONTENT, name=name + b"n"))
    assert str(error) == "gzip header longer than 128 KiB"
    assert (error.reached, error.truncated) == (2 + MAX_HEADER, False)


@pytest.mark.parametrize("size", [1, 100, len(CONTENT), 2 * len(CONTENT)])
@pytest.mark.parametrize("extra", [0, 400, 499, 500, 501, 600, 5000])
def test_the_start_of_a_content_is_read_behind_a_header_of_any_size(extra: int, size: int) -> None:
    data = b"xy" + member_of(CONTENT, extra=b"e" * extra)
    assert inflate_start(Window(File(data), 50), 2, size) == CONTENT[:size]
    assert inflate_start(Window(File(data), 50), 0, size) == b""
    assert inflate_start(Window(File(data[:14]), 50), 2, size) == b""
    bad = data[: len(data) - len(member_of(CONTENT)) + 10] + b"\xff" * 99
    assert inflate_start(Window(File(bad), 50), 2, size) == b""
