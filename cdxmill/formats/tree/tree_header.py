"""The header of a prefix B-tree, and the check of its blocks: docs/formats/prefix-btree.md is the specification.

2012     block size, number of index blocks        4 bytes each, little endian
ours     what a reader needs to know: the pointers, the number of items, and where the names of archives are

Files of both kinds have the same blocks. In ours, the last 4 bytes of each block are its CRC-32.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from isal.isal_zlib import crc32

from cdxmill.formats.archives.framing import GZIP_MAGIC

MAGIC = b"cdxtree1"
"""The first bytes of a file with our header. As a header of 2012 it is impossible."""
OLD_HEADER = 8
"""Bytes of the header of 2012."""
CHECK = 4
"""Bytes of the CRC-32 at the end of a block."""
LEAST_BLOCK, MOST_BLOCK = 10, 1 << 24
"""Bytes of a block: two numbers and a prefix of one byte; and a limit for what a corrupt header can ask for."""
MOST_HEADER = 1 << 24
FINGERPRINT = 16

_OLD = struct.Struct("<II")
_OURS = struct.Struct(f"<8sIIIIQ{FINGERPRINT}sIHI")
_SIZES = struct.Struct("<8sI")


class Header(NamedTuple):
    """What the start of a file says. In a file of 2012, only the first two are known.

    `names` are the bytes of each group of names: name_groups.py. `fingerprint` differs for each content.
    """

    block_size: int
    index_blocks: int
    data_blocks: int | None = None
    items: int = 0
    layout: str = ""
    fingerprint: bytes = b""
    archives: int = 0
    names: Sequence[int] = ()

    @property
    def start(self) -> int:
        """Bytes of the header: the offset of block 0."""
        if self.data_blocks is None:
            return OLD_HEADER
        return _OURS.size + len(self.layout.encode()) + 4 * len(self.names) + CHECK

    @property
    def last_block(self) -> int | None:
        """The number of the last data block. None in a file of 2012, which does not say it."""
        return None if self.data_blocks is None else self.index_blocks + self.data_blocks - 1

    def offset(self, block: int) -> int:
        """The offset of a block."""
        return self.start + block * self.block_size

    def check(self, block: int, content: bytes) -> bytes:
        """The check of a block."""
        return block_check(block if block < self.index_blocks else block - self.index_blocks, content)


def block_check(number: int, content: bytes) -> bytes:
    r"""The CRC-32 of the number of a block, and its bytes. Blocks of the index and of the data are counted on their own.

    >>> block_check(1, b"abc")
    b'\x1aL~\xf1'
    """
    return crc32(content, crc32(number.to_bytes(4, "little"))).to_bytes(CHECK, "little")


def format_header(header: Header) -> bytes:
    r"""The start of a file.

    >>> format_header(Header(65536, 3))
    b'\x00\x00\x01\x00\x03\x00\x00\x00'
    >>> parse_header(format_header(Header(99, 1, 2, 7, "capture", bytes(16), 5, (9,)))).names
    (9,)
    """
    if header.data_blocks is None:
        return _OLD.pack(header.block_size, header.index_blocks)
    layout = header.layout.encode()
    numbers = header.block_size, header.index_blocks, header.data_blocks, header.items
    more = header.fingerprint, header.archives, len(layout), len(header.names)
    text = _OURS.pack(MAGIC, header.start, *numbers, *more) + layout
    text += struct.pack(f"<{len(header.names)}I", *header.names)
    return text + crc32(text).to_bytes(CHECK, "little")


def is_tree(head: bytes, size: int) -> bool:
    r"""Whether a local file of `size` bytes that starts with `head`, of `OLD_HEADER` bytes or more, is a prefix B-tree.

    The header of 2012 has no magic number: it is one if the file is made of whole blocks, as the header says. The first
    number of a text is larger than any block.

    >>> is_tree(b"cdxtree1", 8), is_tree(b"\x00\x00\x01\x00\x01\x00\x00\x00", 8 + 2 * 65536), is_tree(b"com,a)/ ", 99)
    (True, True, False)
    """
    if head.startswith(MAGIC):
        return True
    if len(head) < OLD_HEADER or head.startswith(GZIP_MAGIC):
        return False
    block_size, index_blocks = _OLD.unpack_from(head)
    if not LEAST_BLOCK <= block_size <= MOST_BLOCK or not index_blocks:
        return False
    blocks, rest = divmod(size - OLD_HEADER, block_size)
    return not rest and blocks > index_blocks


def header_size(data: bytes) -> int:
    """Bytes of the header of a file that starts with `data`, at least 12 bytes. Raises ValueError if it is impossible."""
    if not data.startswith(MAGIC):
        return OLD_HEADER
    size: int = _SIZES.unpack_from(data.ljust(_SIZES.size, b"\0"))[1]
    if not _OURS.size + CHECK <= size <= MOST_HEADER:
        raise ValueError("the header is corrupt")
    return size


def parse_header(data: bytes) -> Header:
    """The header. Raises ValueError if it is corrupt."""
    size = header_size(data)
    if len(data) < size:
        raise ValueError(f"it has {len(data)} bytes, less than a header")
    header = Header(*_OLD.unpack_from(data)) if size == OLD_HEADER else _parsed(data[:size])
    if not LEAST_BLOCK <= header.block_size <= MOST_BLOCK:
        raise ValueError(f"not a prefix B-tree, or corrupt (blocks of {header.block_size} bytes)")
    if not header.index_blocks:
        raise ValueError("not a prefix B-tree, or corrupt (no index block)")
    return header


def _parsed(data: bytes) -> Header:
    text = data[:-CHECK]
    if crc32(text).to_bytes(CHECK, "little") != data[-CHECK:]:
        raise ValueError("the header is corrupt (CRC32 mismatch)")
    _, _, block_size, index, blocks, items, fingerprint, archives, layout_size, groups = _OURS.unpack_from(
        text
    )
    layout, sizes = text[_OURS.size :][:layout_size], text[_OURS.size + layout_size :]
    if len(sizes) != 4 * groups:
        raise ValueError("the header is corrupt")
    names = struct.unpack(f"<{groups}I", sizes)
    numbers = block_size, index, blocks, items
    return Header(*numbers, layout.decode("utf-8", "replace"), fingerprint, archives, names)
