"""Exactly what `cdxmill verify` reports about shards, their parts and their lines in the index."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdxmill.checks.shards import _difference
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.split_points import parse_text
from cdxmill.stages.zipnum.check_index import WrongLine, numbered

from ..material.clusters import rows_of, write_raw_cluster
from .checking import SHARDS, Told, found
from .test_verify_beside import change_manifest

Lines = list[bytes]


def of_index(cluster: Path) -> list[bytes]:
    return (cluster / "cluster.idx").read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: [*lines[:2], b"x" + lines[2], *lines[3:]], "line 3 is {x!r}, but block 3 of cdx-00001.gz is {third!r}"),
        (lambda lines: lines[:-1], "block {last} of cdx-00001.gz is missing, expected {end!r}"),
        (lambda lines: [*lines, b"zzz\tcdx-00001.gz\t1\t2\n"], "line {after} is b'zzz\\tcdx-00001.gz\\t1\\t2', but cdx-00001.gz has no block {after}"),
        (lambda lines: [*lines[:-1], lines[-1][:-1]], "its lines for cdx-00001.gz do not end with one line end"),
        (lambda lines: [*lines, b"\n"], "its lines for cdx-00001.gz do not end with one line end"),
        (lambda lines: [], "block 1 of cdx-00001.gz is missing, expected {first!r}"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_manifest", [True, False])
def test_the_first_wrong_line_of_a_part_is_reported(
    change: Callable[[Lines], Lines], told: str, has_manifest: bool, cluster: Path
) -> None:
    if not has_manifest:
        (cluster / "cluster.json").unlink()
    part = cluster / "part-00001"
    lines = part.read_bytes().splitlines(keepends=True)
    assert len(lines) > 3
    part.write_bytes(b"".join(change(lines)))
    names = {
        "x": (b"x" + lines[2][:-1])[:120],
        "third": lines[2][:-1][:120],
        "first": lines[0][:-1][:120],
        "end": lines[-1][:-1][:120],
        "last": len(lines),
        "after": len(lines) + 1,
    }
    assert found(cluster) == [f"{part}: {told.format(**names)}"]


def test_a_wrong_line_of_the_index_has_its_number_in_the_index(cluster: Path) -> None:
    lines = of_index(cluster)
    number = next(number for number, line in enumerate(lines) if b"cdx-00001" in line) + 1
    row = lines[number].split(b"\t")
    row[2] = b"7"
    lines[number] = b"\t".join(row)
    for name in ("cluster.idx", "cluster.summary"):
        (cluster / name).write_bytes(b"".join(lines))
    (line,) = found(cluster)
    assert line.startswith(f"{cluster}/cluster.idx: line {number + 1} is ")
    assert "but block 2 of cdx-00001.gz is " in line


def raw(directory: Path, shards: list[list[list[bytes]]]) -> Path:
    """A cluster of these blocks of lines in shards, whatever they are."""
    directory.mkdir()
    index, number = b"", 0
    for shard, blocks in enumerate(shards):
        name, data = f"cdx-{shard:05d}.gz", b""
        for block in blocks:
            number += 1
            packed = gzip.compress(b"".join(line + b"\n" for line in block))
            key = b" ".join(block[0].split(b" ")[:2])
            index += b"%b\t%b\t%d\t%d\t%d\n" % (key, name.encode(), len(data), len(packed), number)
            data += packed
        (directory / name).write_bytes(data or gzip.compress(b""))
    (directory / "cluster.idx").write_bytes(index)
    return directory


A, B, C, D, E = (b"com,%b)/ 2020 {}" % name for name in (b"a", b"b", b"c", b"d", b"e"))


@pytest.mark.parametrize(
    ("shards", "told"),
    [
        ([[[A]], [[B]], [[C]]], []),
        ([[[A]], [], [[B]]], []),
        ([[[A]], [[A]], [[B]]], [f"1.gz@0: starts with {A!r}, but cdx-00000.gz ends with {A!r}"]),
        ([[[B]], [], [[B]]], [f"2.gz@0: starts with {B!r}, but cdx-00000.gz ends with {B!r}"]),
        ([[[A, C]], [[B]], [[D]]], [f"1.gz@0: starts with {B!r}, but cdx-00000.gz ends with {C!r}"]),
        ([[[A, B], [C]], [[D, E]]], []),
        ([[[A, B]], [[C]], [[D, E]]], []),
        ([[[A, B], [C]], [[D], [E]]], ["1.gz: has 1 lines in a block, but other shards have 2"]),
        ([[[A, B], [C]], [], [[D], [E]]], ["2.gz: has 1 lines in a block, but other shards have 2"]),
        ([[[A], [B]], [[C, D]], [[E]]], ["1.gz: has 2 lines in a block, but other shards have 1"]),
    ],
)  # fmt: skip
def test_shards_are_in_order_and_have_blocks_of_one_size(
    shards: list[list[list[bytes]]], told: list[str], tmp_path: Path
) -> None:
    cluster = raw(tmp_path / "C", shards)
    lines = [line for line in found(cluster) if "is out of order" not in line]
    assert lines == [f"{cluster}/cdx-0000{line}" for line in told]


def renamed(cluster: Path, names: list[str]) -> None:
    """Give the shards other names, in the index, too."""
    rows = [line.split(b"\t") for line in of_index(cluster)]
    for number in range(len(names)):
        (cluster / f"cdx-{number:05d}.gz").rename(cluster / f"{number}")
    for number, new in enumerate(names):
        (cluster / f"{number}").rename(cluster / new)
    lines = [b"\t".join([row[0], names[int(row[1][4:9])].encode(), *row[2:]]) for row in rows]
    (cluster / "cluster.idx").write_bytes(b"".join(lines))


def test_without_the_manifest_shards_have_the_order_of_the_index(tmp_path: Path) -> None:
    """If files or rows of cluster.loc say of more shards, that of their numbers."""
    cluster = raw(tmp_path / "C", [[[A]], [[B]], [[C]]])
    renamed(cluster, ["cdx-00002.gz", "cdx-00000.gz", "cdx-00001.gz"])
    assert found(cluster) == []
    (cluster / "cdx-00003.gz").write_bytes(gzip.compress(b""))
    lines = found(cluster)
    assert f"{cluster}/cdx-00002.gz@0: starts with {A!r}, but cdx-00001.gz ends with {C!r}" in lines


def test_a_shard_that_only_cluster_loc_names_is_missed(tmp_path: Path) -> None:
    cluster = raw(tmp_path / "C", [[[A]], [[B]]])
    names = ["cdx-00000.gz", "cdx-00001.gz"]
    (cluster / "cluster.loc").write_text("".join(f"{name}\t{name}\n" for name in names))
    assert found(cluster) == []
    (cluster / "cluster.loc").write_text("".join(f"{name}\t{name}\n" for name in [*names, "cdx-00002.gz"]))
    assert any(line.startswith(f"{cluster}/cdx-00002.gz: cannot be read") for line in found(cluster))


def test_faults_of_an_index_have_its_own_name(tmp_path: Path) -> None:
    cluster = raw(tmp_path / "C", [[[A]], [[B]]])
    (cluster / "crawl.idx").write_bytes((cluster / "cluster.idx").read_bytes() + b"x")
    lines = found(cluster / "crawl.idx")
    assert [line.partition(": ")[0] for line in lines] == [f"{cluster}/crawl.idx@66", f"{cluster}/crawl.idx"]
    assert found(cluster) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (WrongLine(0, b"", b""), "its lines for s do not end with one line end"),
        (WrongLine(2, b"", b"w" * 121), f"block 2 of s is missing, expected {b'w' * 120!r}"),
        (WrongLine(2, b"f" * 121, b""), f"line 8 is {b'f' * 120!r}, but s has no block 2"),
        (
            WrongLine(1, b"f" * 121, b"w" * 121),
            f"line 7 is {b'f' * 120!r}, but block 1 of s is {b'w' * 120!r}",
        ),
    ],
)
def test_a_wrong_line_is_told_with_its_number_in_the_file(wrong: WrongLine, told: str) -> None:
    assert _difference("s", wrong, 7) == told


@pytest.mark.parametrize(("damaged", "more"), [(20, []), (21, ["1 more corrupt blocks"])])
def test_each_corrupt_block_is_reported_up_to_20(damaged: int, more: list[str], tmp_path: Path) -> None:
    cluster = Path(write_raw_cluster(tmp_path / "C", [b"com,a)/%02d 2020 {}" % n for n in range(25)], 1))
    rows = rows_of(b"".join(line.rpartition(b"\t")[0] + b"\n" for line in of_index(cluster)))
    shard = cluster / "cdx-00000.gz"
    data = bytearray(shard.read_bytes())
    for row in rows[:damaged]:
        data[row.offset + row.length // 2] ^= 0xFF
    shard.write_bytes(data)
    lines = found(cluster)
    assert [line.partition(": ")[0] for line in lines[:20]] == [f"{shard}@{row.offset}" for row in rows[:20]]
    assert [line.partition(": ")[2] for line in lines[20:]] == more
    assert all(line.startswith(f"{shard}@{rows[damaged - 1].offset}:") for line in lines[20:])


def test_a_shard_of_another_block_size_is_found_though_all_files_match(made: Path, cluster: Path) -> None:
    """Its part, the indexes and cluster.json are those that belong to it."""
    other = cluster.parent / "other"
    points = tuple(parse_text((cluster / "splits.txt").read_bytes()))
    options = ZipnumOptions(
        shards=SHARDS, points=points, block_lines=20, compressor=Compressor("zlib-ng", 5, 10), quiet=True
    )
    build_cluster(sorted(map(str, (made / "inputs").iterdir())), other, options, Told())
    for name in ("cdx-00001.gz", "part-00001"):
        shutil.copyfile(other / name, cluster / name)
    parts = b"".join(path.read_bytes() for path in sorted(cluster.glob("part-*")))
    for name in ("cluster.idx", "cluster.summary"):
        (cluster / name).write_bytes(numbered(parts, 1))
    entry = json.loads((other / "cluster.json").read_bytes())["shards"][1]

    def change(content: dict[str, Any]) -> None:
        content["shards"][1] = entry
        content["blocks"] = sum(shard["blocks"] for shard in content["shards"])

    change_manifest(cluster, change)
    lines = found(cluster)
    assert lines[0] == f"{cluster}/cdx-00001.gz@0: block 1: has 20 lines, expected 40"
    assert all(line.startswith(f"{cluster}/cdx-00001.gz") for line in lines)
