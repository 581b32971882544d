"""Memory does not grow with the size of a record, nor with the size to which a small file expands."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from isal import isal_zlib

LIMIT = 100
"""MB. Measured 27 to 42; a whole record in memory would take 400 or more."""
LIMIT_OF_REPORTS = 70
"""MB. With 100,000 reports, 300 bytes that are kept of each exceed it."""

MB = 1_000_000
LARGE = 400 * MB
CLOSING = b"\r\n\r\n"
SMALL = (
    b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://example.org/small\r\n"
    b"WARC-Record-ID: <urn:uuid:2>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\nContent-Length: 5\r\n\r\nhello"
    + CLOSING
)

Packer = Callable[[Path, list[Iterator[bytes]]], None]


def header(size: int) -> bytes:
    """The header of a response without a digest, so that its payload has to be hashed."""
    return (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/large\r\n"
        b"WARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\nContent-Length: %d\r\n\r\n"
        % size
    )


def large(size: int) -> Iterator[bytes]:
    """A record with a block of `size` bytes, in pieces."""
    yield header(size)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    yield head
    size -= len(head)
    while size:
        piece = bytes(min(size, 1 << 20))
        yield piece
        size -= len(piece)
    yield CLOSING


def write_plain(path: Path, records: list[Iterator[bytes]]) -> None:
    """Write the pieces; zeros become holes in the file."""
    with path.open("wb") as file:
        for pieces in records:
            for piece in pieces:
                if piece.strip(b"\0"):
                    file.write(piece)
                else:
                    file.truncate(file.tell() + len(piece))
                    file.seek(len(piece), 1)


def write_gzip(path: Path, records: list[Iterator[bytes]]) -> None:
    """One member per record, compressed quickly."""
    with path.open("wb") as file:
        for pieces in records:
            deflater = isal_zlib.compressobj(1, zlib.DEFLATED, 31)
            for piece in pieces:
                file.write(deflater.compress(piece))
            file.write(deflater.flush())


def write_tight_gzip(path: Path, records: list[Iterator[bytes]]) -> None:
    """One member per record, at zlib's best ratio: 1000 to 1."""
    with path.open("wb") as file:
        for pieces in records:
            deflater = zlib.compressobj(9, zlib.DEFLATED, 31)
            for piece in pieces:
                file.write(deflater.compress(piece))
            file.write(deflater.flush())


def write_zst(path: Path, records: list[Iterator[bytes]]) -> None:
    """One frame per record."""
    with path.open("wb") as file:
        for pieces in records:
            deflater = zstandard.ZstdCompressor(level=1, write_checksum=True).compressobj()
            for piece in pieces:
                file.write(deflater.compress(piece))
            file.write(deflater.flush())


def index_with_peak(path: Path, out: Path) -> tuple[int, float]:
    """Exit status of `cdxmill index`, and its peak memory in MB."""
    return with_peak("index", path, out)


def with_peak(name: str, path: Path, out: Path) -> tuple[int, float]:
    """Exit status of a command that reads an archive, and its peak memory in MB."""
    command = [
        str(Path(sys.executable).parent / "cdxmill"),
        name,
        "-p",
        "1",
        "-q",
        "-o",
        str(out),
        str(path),
    ]
    peak = [sys.executable, str(Path(__file__).with_name("peak.py"))]
    done = subprocess.run([*peak, *command], capture_output=True, text=True, check=False)
    return done.returncode, int(done.stdout) * 1024 / MB


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.warc", write_plain),
        ("a.warc.gz", write_gzip),
        ("a.warc.zst", write_zst),
        ("tight.warc.gz", write_tight_gzip),
    ],
)
def test_memory_is_flat(name: str, write: Packer, tmp_path: Path) -> None:
    path = tmp_path / name
    write(path, [large(LARGE), iter([SMALL])])
    if name.startswith("tight"):
        assert path.stat().st_size < 0.6 * MB
    status, peak = index_with_peak(path, tmp_path / "out")
    path.unlink()
    assert status == 0
    assert len(lines(tmp_path / "out")) == 2
    assert peak < LIMIT


@pytest.mark.parametrize(("name", "write"), [("a.warc", write_plain), ("a.warc.gz", write_tight_gzip)])
def test_memory_is_flat_if_a_large_record_is_written_again(name: str, write: Packer, tmp_path: Path) -> None:
    path, size = tmp_path / name, 200 * MB
    write(path, [large(size), iter([SMALL])])
    status, peak = with_peak("recompress", path, tmp_path / "out")
    (output,) = (tmp_path / "out").rglob("*.zst")
    assert status == 0
    assert zstandard.get_frame_parameters(output.read_bytes()).content_size == sum(map(len, large(size)))
    with (
        output.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as reader,
    ):
        assert sum(map(len, iter(lambda: reader.read(MB), b""))) == sum(map(len, large(size))) + len(SMALL)
    assert peak < LIMIT


@pytest.mark.parametrize("write", [write_tight_gzip, write_zst])
def test_memory_is_flat_if_a_length_is_wrong(write: Packer, tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    bomb = iter([header(10), *large(100 * MB)])
    write(path, [bomb, iter([SMALL])])
    status, peak = index_with_peak(path, tmp_path / "out")
    assert status == 1
    assert len(lines(tmp_path / "out")) == 1
    assert peak < LIMIT


def test_memory_is_flat_if_everything_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"WARC/1.0\r\nWARC-Type: response\r\n\r\n\r\n\r\n" * 100_000)
    status, peak = index_with_peak(path, tmp_path / "out")
    assert status == 1
    assert peak < LIMIT_OF_REPORTS


def lines(directory: Path) -> list[bytes]:
    """The lines of the one index in the folder."""
    (path,) = directory.rglob("*.cdx.gz")
    return zlib.decompress(path.read_bytes(), 31).splitlines()
