"""A finished cluster as a reader sees it: its files, their bytes, and checks that all of them agree."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

NAMES = {"cluster.idx", "cluster.summary", "cluster.loc", "cluster.json", "splits.txt", "splits.seq"}


class Row(NamedTuple):
    """One line of a part."""

    key: bytes
    shard: bytes
    offset: int
    length: int


def shards_of(directory: Path) -> list[bytes]:
    """The decompressed shards, in order."""
    return [gzip.decompress(path.read_bytes()) for path in sorted(directory.glob("cdx-*.gz"))]


def published(directory: Path) -> dict[str, bytes]:
    """All files of a cluster by name, without cluster.loc and .finished.json, which depend on the folder."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.is_file() and path.name != "cluster.loc" and path.name[0] != "."
    }


def rows_of(part: bytes) -> list[Row]:
    rows = [line.rsplit(b"\t", 3) for line in part.split(b"\n")[:-1]]
    return [Row(key, shard, int(offset), int(length)) for key, shard, offset, length in rows]


def check_cluster(directory: Path, lines: bytes, numlines: int = 3000, location: str | None = None) -> None:
    """Fail unless `folder` is a complete cluster of exactly these sorted lines."""
    texts = shards_of(directory)
    assert b"".join(texts) == lines
    numbers = range(len(texts))
    expected = {f"part-{number:05d}" for number in numbers} | {f"cdx-{number:05d}.gz" for number in numbers}
    found = {path.name for path in directory.iterdir()}
    assert found - {".finished.json"} == NAMES | expected
    for number, text in enumerate(texts):
        _check_part(directory, number, text, numlines)
    _check_splits(directory, texts)
    _check_index(directory)
    _check_locations(directory, len(texts), location)
    _check_manifest(directory, texts, numlines)


def _check_part(directory: Path, number: int, text: bytes, numlines: int) -> None:
    shard, end = (directory / f"cdx-{number:05d}.gz").read_bytes(), 0
    lines = text.split(b"\n")[:-1]
    rows = rows_of((directory / f"part-{number:05d}").read_bytes())
    for index, row in enumerate(rows):
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        block = inflater.decompress(shard[row.offset : row.offset + row.length])
        wanted = lines[index * numlines : (index + 1) * numlines]
        assert inflater.eof
        assert not inflater.unused_data
        assert block == b"".join(line + b"\n" for line in wanted)
        key = b" ".join(wanted[0].split(b" ")[:2])
        assert row.key == key.replace(b"\x08", b"\x08\1").replace(b"\t", b"\x08\2")
        assert (row.shard, row.offset) == (f"cdx-{number:05d}.gz".encode(), end)
        end += row.length
    assert len(rows) == -(-len(lines) // numlines)
    if not rows:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        assert inflater.decompress(shard) == inflater.unused_data == b""
        assert inflater.eof
    else:
        assert end == len(shard)


def _check_splits(directory: Path, texts: list[bytes]) -> None:
    points = (directory / "splits.txt").read_bytes().split(b"\n")[:-1]
    assert len(points) + 1 == len(texts)
    for number, text in enumerate(texts):
        assert {bisect_right(points, line) for line in text.split(b"\n")[:-1]} <= {number}


def _check_index(directory: Path) -> None:
    parts = b"".join(path.read_bytes() for path in sorted(directory.glob("part-*")))
    numbered = [b"%b\t%d\n" % (line, number) for number, line in enumerate(parts.split(b"\n")[:-1], 1)]
    keys = [row.key for row in rows_of(parts)]
    assert keys == sorted(keys)
    assert (directory / "cluster.idx").read_bytes() == b"".join(numbered)
    assert (directory / "cluster.summary").read_bytes() == b"".join(numbered)


def _check_locations(directory: Path, shards: int, location: str | None) -> None:
    rows = [line.split("\t") for line in (directory / "cluster.loc").read_text().splitlines()]
    names = [f"cdx-{number:05d}.gz" for number in range(shards)]
    assert rows == [[name, f"{location or directory.absolute()}/{name}"] for name in names]


def _check_manifest(directory: Path, texts: list[bytes], numlines: int) -> None:
    manifest = json.loads((directory / "cluster.json").read_bytes())
    shards = sorted(directory.glob("cdx-*.gz"))
    blocks = [len(rows_of(path.read_bytes())) for path in sorted(directory.glob("part-*"))]
    assert manifest["numlines"] == numlines
    assert manifest["splits_sha256"] == hashlib.sha256((directory / "splits.txt").read_bytes()).hexdigest()
    assert manifest["lines"] == sum(text.count(b"\n") for text in texts)
    assert manifest["blocks"] == sum(blocks)
    assert {"library", "version", "level"} <= set(manifest["compressor"])
    assert manifest["shards"] == [
        {
            "name": path.name,
            "bytes": path.stat().st_size,
            "lines": text.count(b"\n"),
            "blocks": count,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path, text, count in zip(shards, texts, blocks, strict=True)
    ]


def write_raw_cluster(directory: Path, lines: list[bytes], block_lines: int = 3000) -> str:
    """A cluster of these sorted lines, whatever they are: an index and one shard, without any check."""
    directory.mkdir()
    shard = index = b""
    for number, start in enumerate(range(0, len(lines), block_lines), 1):
        chosen = lines[start : start + block_lines]
        block = gzip.compress(b"".join(line + b"\n" for line in chosen))
        key = b" ".join(chosen[0].split(b" ")[:2])
        index += b"%b\tcdx-00000.gz\t%d\t%d\t%d\n" % (key, len(shard), len(block), number)
        shard += block
    (directory / "cdx-00000.gz").write_bytes(shard)
    (directory / "cluster.idx").write_bytes(index)
    return str(directory)
