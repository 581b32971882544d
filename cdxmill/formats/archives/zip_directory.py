"""The directory of a zip: which files are in it, and where their bytes are. Nothing is decompressed."""

from __future__ import annotations

import io
import itertools
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

_LARGEST = 16 << 20
"""Bytes of the largest directory that is read: some 100,000 files."""
_LOCAL = struct.Struct("<4s5H3L2H")
"""The header before the bytes of a file: magic, ..., CRC32, two sizes, lengths of the name and of the extra field."""
_MAGIC = b"PK\x03\x04"
_ENCRYPTED, _HAS_DESCRIPTOR, _UTF8 = 0x1, 0x8, 0x800
"""Flags of a file: encrypted; its sizes follow its bytes; its name is UTF-8."""
_DESCRIPTOR = b"PK\x07\x08"
_LONGEST_DESCRIPTOR = 24
_END, _END_64 = b"PK\x05\x06", b"PK\x06\x06"
_COUNTED = 1 << 16
_TAIL = (1 << 16) + 100
"""Bytes at the end of a zip that have its end record: a comment may follow."""
_IN_EXTRA_FIELD = 0xFFFFFFFF

FETCH_AGAIN = "fetch the file again"
REPACK = "unpack it and index its files, or pack it again without compression (zip -0)"

ReadAt = Callable[[int, int], bytes]
_FORMS = (("<3L", 0xFFFFFFFF), ("<L2Q", 0xFFFFFFFFFFFFFFFF))
"""A descriptor: CRC32 and two sizes, with 32 or 64 bits."""


class ZipError(ValueError):
    """The zip, or a file in it, cannot be read. The text is the reason; `hint` says what to do."""

    def __init__(self, reason: str, hint: str = FETCH_AGAIN) -> None:
        super().__init__(reason)
        self.hint = hint


class Member(NamedTuple):
    """A file in a zip: its name, the offset of its header, its size, and the offset at which its bytes have to end.

    `refused` is an error if the directory shows that its bytes cannot be read.
    """

    name: str
    header: int
    size: int
    crc: int
    limit: int
    refused: ZipError | None


def read_directory(read_at: ReadAt, size: int) -> dict[str, Member]:
    """The files of the zip of `size` bytes by name, in the order of the directory. Raises ZipError."""
    file = _ZipBytes(read_at, size)
    try:
        with zipfile.ZipFile(file) as found:
            entries, end = found.infolist(), found.start_dir
    except ZipError:
        raise
    except zipfile.BadZipFile as error:
        raise ZipError(f"is truncated or not a zip file ({_first_line(error)})") from None
    except (ValueError, struct.error, NotImplementedError, OverflowError) as error:
        raise ZipError(f"the directory of the zip is corrupt ({_first_line(error)})") from None
    if (len(entries) - _count(file.tail)) % _COUNTED:
        raise ZipError("the directory of the zip has more or fewer files than it says")
    files = [entry for entry in entries if entry.file_size or not entry.filename.endswith("/")]
    return _members(files, entries, end)


def data_offset(read_at: ReadAt, member: Member) -> int:
    """The offset of the bytes of a file, which are stored uncompressed. Raises ZipError.

    The header before the bytes, and the sizes after them, have to say the same as the directory.
    """
    if member.refused is not None:
        raise member.refused
    flags, method, packed, size, start = local_header(read_at, member)
    if method != zipfile.ZIP_STORED or flags & _ENCRYPTED:
        raise ZipError("its header in the zip says that it is compressed or encrypted", REPACK)
    if start + member.size > member.limit:
        raise ZipError("its bytes in the zip overlap with those of another file")
    sizes = {packed, size} - {_IN_EXTRA_FIELD}
    if flags & _HAS_DESCRIPTOR and sizes <= {0}:
        _check_descriptor(read_at(start + member.size, _LONGEST_DESCRIPTOR), member)
    elif not sizes <= {member.size}:
        raise ZipError("its header and the directory of the zip disagree about its size")
    return start


def local_header(read_at: ReadAt, member: Member) -> tuple[int, int, int, int, int]:
    """From the header before the bytes of a file: flags, method, two sizes, and the offset of the bytes.

    Raises ZipError if the header is missing, or has another name than the directory.
    """
    header = read_at(member.header, _LOCAL.size) if member.header >= 0 else b""
    if len(header) < _LOCAL.size or not header.startswith(_MAGIC):
        raise ZipError(f"the header of {member.name} in the zip is missing")
    _, _, flags, method, _, _, _, packed, size, name_size, extra_size = _LOCAL.unpack(header)
    name = read_at(member.header + _LOCAL.size, name_size)
    if name.decode("utf-8" if flags & _UTF8 else "cp437", "replace") != member.name:
        raise ZipError(f"the header of {member.name} in the zip has another name")
    return flags, method, packed, size, member.header + _LOCAL.size + name_size + extra_size


def _check_descriptor(after: bytes, member: Member) -> None:
    """Raise ZipError if the sizes that follow the bytes are not those of the directory."""
    found = after.removeprefix(_DESCRIPTOR)
    expected = (struct.pack(form, member.crc, *[member.size & mask] * 2) for form, mask in _FORMS)
    if not any(map(found.startswith, expected)):
        raise ZipError("the sizes after its bytes and those in the directory of the zip disagree")


def _count(tail: bytes) -> int:
    """The number of files, modulo 65536, as the end of a zip says. zipfile does not compare it."""
    end = tail.rfind(_END)
    count = int.from_bytes(tail[end + 10 : end + 12], "little")
    large = tail[max(end - 76, 0) : end]  # the end of a zip64, and its locator
    if count == _COUNTED - 1 and large.startswith(_END_64):
        return int.from_bytes(large[32:34], "little")
    return count


def _members(
    files: Sequence[zipfile.ZipInfo], entries: Iterable[zipfile.ZipInfo], end: int
) -> dict[str, Member]:
    starts = sorted({entry.header_offset for entry in entries} | {end})
    limits = dict(itertools.pairwise(starts))
    times = Counter(entry.filename for entry in files)
    return {
        entry.filename: Member(
            entry.filename,
            entry.header_offset,
            entry.file_size,
            entry.CRC,
            limits.get(entry.header_offset, 0),
            _refused(entry, times[entry.filename]),
        )
        for entry in files
    }


def _refused(entry: zipfile.ZipInfo, times: int) -> ZipError | None:
    steps = entry.orig_filename.replace("\\", "/").split("/")
    if {"", ".", ".."} & set(steps) or "\0" in entry.orig_filename:
        return ZipError("its name in the zip leads elsewhere", "unpack it and index its files")
    if times > 1:
        return ZipError(f"the zip has {times} files with this name", "unpack it and index its files")
    if entry.flag_bits & _ENCRYPTED:
        return ZipError("is encrypted in the zip", "decrypt it, and index its files")
    if entry.compress_type != zipfile.ZIP_STORED:
        return ZipError("is compressed in the zip, so its records have no byte range there", REPACK)
    if entry.compress_size != entry.file_size or entry.header_offset < 0:
        return ZipError("its size or offset in the directory of the zip is wrong")
    return None


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200]


class _ZipBytes(io.RawIOBase):
    """The zip as the file that zipfile wants: `tail` is its end. Only the directory is read besides."""

    def __init__(self, read_at: ReadAt, size: int) -> None:
        self._read_at, self._size, self._pos = read_at, size, 0
        self._tail_start = max(size - _TAIL, 0)
        self.tail = read_at(self._tail_start, size - self._tail_start)

    def tell(self) -> int:
        return self._pos

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._pos, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError("before the start of the file")
        self._pos = start + offset
        return self._pos

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._pos, 0)
        size = left if size < 0 else min(size, left)
        if size > _LARGEST:
            raise ZipError(f"the directory of the zip has more than {_LARGEST >> 20} MiB", REPACK)
        start = self._pos - self._tail_start
        data = self.tail[start : start + size] if start >= 0 else self._read_at(self._pos, size)
        self._pos += len(data)
        return data
