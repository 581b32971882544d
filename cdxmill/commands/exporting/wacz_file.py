"""A directory that `copy` has written -> one WACZ: its archives as they are, an index of them all, pages and digests."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from cdxmill.formats.archives.wacz_package import (
    DIGEST,
    INDEX,
    INDEX_HEAD,
    INDEX_OF_INDEX,
    PACKAGE,
    PAGES,
    PAGES_HEAD,
    Resource,
    format_block_line,
    format_digest,
    format_package,
    page_of,
)
from cdxmill.formats.clusters.compressor import BLOCKS, Compressor
from cdxmill.formats.clusters.zipnum import key_of
from cdxmill.stages.lines.line_lists import cut_blocks, split_lines
from cdxmill.stages.lines.merge_lines import merge_lines
from cdxmill.storage.local import stopping
from cdxmill.storage.location import pieces
from cdxmill.storage.scratch import Scratch
from cdxmill.storage.wacz import ARCHIVE

_LINES = 300
"""Lines of a block, as cdxj-indexer has them: a browser fetches a block for each page."""
_PIECE = 1 << 20
_MODE = 0o644
ENDING = ".warc.gz"
Signer = Callable[[bytes], dict[str, Any] | None]
"""Takes datapackage.json, and returns its signature."""


class WaczParts:
    """What a WACZ consists of: the archives in `copied`, and the files about them in `made`, which `make` writes."""

    def __init__(self, copied: Path, made: Path) -> None:
        self._copied, self._made = copied, made
        self.archives = sorted(path.name for path in copied.iterdir() if path.name.endswith(ENDING))

    def make(self, tick: Callable[[], object]) -> int:
        """Write the index and the list of pages. Returns the number of pages. Raises StoppedError."""
        number = offset = 0
        packer = Compressor(BLOCKS.library, BLOCKS.level)
        scratch = Scratch(self._made)
        with (
            scratch.create(_file_of(INDEX)) as index,
            scratch.create(_file_of(INDEX_OF_INDEX)) as blocks,
            scratch.create(_file_of(PAGES)) as pages,
        ):
            blocks.write(INDEX_HEAD)
            pages.write(PAGES_HEAD)
            for _, text in cut_blocks(self._lines(), _LINES):
                lines = bytes(text).splitlines()
                packed = packer.compress(text)
                index.write(packed)
                blocks.write(format_block_line(key_of(lines[0]), offset, packed))
                offset += len(packed)
                found = [page for page in map(page_of, lines) if page is not None]
                pages.writelines(found)
                number += len(found)
                tick()
        return number

    def _lines(self) -> Iterator[list[bytes]]:
        """The index lines of all archives, sorted."""
        read = Scratch(self._copied).reader
        indexes = [read(f"{name.removesuffix(ENDING)}.cdxj") for name in self.archives]
        return merge_lines([split_lines(pieces(read_at)) for read_at in indexes])

    def files(self) -> Iterator[tuple[str, Path]]:
        """The name in the WACZ, and the place, of each file that it has."""
        for name in self.archives:
            yield ARCHIVE + name, self._copied / name
        for name in (INDEX, INDEX_OF_INDEX, PAGES):
            yield name, self._made / _file_of(name)


def _file_of(name: str) -> str:
    return name.rpartition("/")[2]


def write_wacz(
    files: Iterable[tuple[str, Path]],
    out: IO[bytes],
    about: dict[str, str],
    sign: Signer,
    tick: Callable[[], object],
) -> None:
    """Write the files, which are stored and not compressed, and then the two that list them. Raises StoppedError."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as package:
        listed = [_add(package, name, path, tick) for name, path in files]
        described = format_package(listed, about)
        for name, data in ((PACKAGE, described), (DIGEST, format_digest(described, sign(described)))):
            package.writestr(_entry(name, len(data)), data)


def _entry(name: str, size: int) -> zipfile.ZipInfo:
    """A member of the zip. It has no time, so that equal files give equal bytes."""
    found = zipfile.ZipInfo(name)
    found.file_size, found.external_attr = size, _MODE << 16
    return found


def _add(package: zipfile.ZipFile, name: str, path: Path, tick: Callable[[], object]) -> Resource:
    digest, size = hashlib.sha256(), 0
    with stopping(path):
        source = path.open("rb")
        expected = path.stat().st_size
    with source, package.open(_entry(name, expected), "w") as member:
        while piece := source.read(_PIECE):
            member.write(piece)
            digest.update(piece)
            size += len(piece)
            tick()
    return Resource(name, size, digest.hexdigest())
