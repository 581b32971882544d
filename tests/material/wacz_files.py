"""WACZ files, made and read by Python's zipfile."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

DATA = "archive/data.warc.gz"


def make_wacz(
    files: Mapping[str, bytes],
    compression: int = zipfile.ZIP_STORED,
    comment: bytes = b"",
    front: bytes = b"",
) -> bytes:
    """A zip with these files. It is written as a stream if `front` comes first."""
    out = io.BytesIO(front)
    out.seek(0, io.SEEK_END)
    with zipfile.ZipFile(out, "a" if front else "w", compression) as archive:
        archive.comment = comment
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return out.getvalue()


class Stream(io.RawIOBase):
    """A file that cannot seek. For it, zipfile writes the sizes of a member after its bytes."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self.data += piece
        return len(piece)


def stream_wacz(files: Mapping[str, bytes], *, zip64: bool = False) -> bytes:
    """A zip with these files, as a program writes it to a pipe: the sizes are after the bytes."""
    out = Stream()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=zip64) as file:
                file.write(data)
    return bytes(out.data)


def read_range(path: Path, offset: int, length: int) -> bytes:
    """The range of a file, which may be in a WACZ: `x.wacz/archive/data.warc.gz`."""
    wacz, found, name = path.as_posix().partition(".wacz/")
    if not found:
        return path.read_bytes()[offset : offset + length]
    with zipfile.ZipFile(f"{wacz}.wacz") as archive:
        return archive.read(name)[offset : offset + length]
