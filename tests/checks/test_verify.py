"""`cdxmill verify`: a valid cluster passes. Every kind of damage is found and reported with its path and offset."""

from __future__ import annotations

import gzip
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.write import write_index
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.formats.clusters.zipnum import key_of
from cdxmill.running.failures import Failures
from cdxmill.storage import patience
from cdxmill.storage.location import locate
from tests.storage.range_server import serving

from ..material.cdx_files import write_gzip
from ..material.clusters import rows_of, shards_of
from .checking import NUMLINES, SHARDS, found, shard_files, swap

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill


@pytest.fixture
def foreign(cluster: Path) -> Path:
    """A cluster as others publish it: only cluster.idx and the shards."""
    for name in ("cluster.json", "cluster.summary", "cluster.loc", "splits.txt", "splits.seq"):
        (cluster / name).unlink()
    for part in cluster.glob("part-*"):
        part.unlink()
    return cluster


def pack(lines: list[bytes]) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(b"".join(line + b"\n" for line in lines)) + packer.flush()


def blocks_of(cluster: Path, number: int = 1) -> list[list[bytes]]:
    """The lines of each block of a shard."""
    lines = shards_of(cluster)[number].split(b"\n")[:-1]
    return [lines[start : start + NUMLINES] for start in range(0, len(lines), NUMLINES)]


def rewrite(cluster: Path, blocks: list[list[bytes]], number: int = 1) -> None:
    """Write a shard of any blocks, with a part and an index that match it."""
    name, offset, part = f"cdx-{number:05d}.gz", 0, b""
    with (cluster / name).open("wb") as file:
        for lines in blocks:
            data = pack(lines)
            file.write(data)
            part += b"%b\t%b\t%d\t%d\n" % (key_of(lines[0]), name.encode(), offset, len(data))
            offset += len(data)
    rows = [
        line
        for other in range(SHARDS)
        for line in (
            [part]
            if other == number
            else [
                b"%b\t%b\t%d\t%d\n" % row
                for row in index_rows(cluster)
                if row[1] == f"cdx-{other:05d}.gz".encode()
            ]
        )
    ]
    has_summary = (cluster / "cluster.summary").exists()
    write_index(locate(cluster), rows)
    if not has_summary:
        (cluster / "cluster.summary").unlink()
    if (cluster / f"part-{number:05d}").exists():
        (cluster / f"part-{number:05d}").write_bytes(part)


def index_rows(cluster: Path) -> list[tuple[bytes, bytes, int, int]]:
    lines = (cluster / "cluster.idx").read_bytes().split(b"\n")[:-1]
    return rows_of(b"".join(line.rpartition(b"\t")[0] + b"\n" for line in lines))  # type: ignore[return-value]


def test_a_good_cluster_passes_and_the_command_says_what_it_did(
    made: Path, cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("verify", cluster, "--against", made / "inputs", "-p", "2")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"900 lines in " in done.stderr
    assert b"4 shards" in done.stderr
    assert done.stderr.endswith(b"every byte was checked, lines compared with the inputs\n")
    (cluster / "cluster.json").unlink()
    done = run_cdxmill("verify", cluster)
    assert done.returncode == 0
    assert b"lines, offsets and order were checked (a check of every byte needs cluster.json)" in done.stderr
    assert done.stderr.endswith(b"; it is not proven that the cluster is complete\n")
    assert run_cdxmill("verify", "-q", cluster).stderr == b""


def test_a_published_cluster_of_idx_and_shards_passes(foreign: Path) -> None:
    assert found(foreign) == []


@pytest.mark.parametrize("lines", [[], [b"com,a)/ 2020 {}"]])
def test_shards_without_lines_pass(lines: list[bytes], tmp_path: Path) -> None:
    path = write_gzip(tmp_path / "a.cdxj.gz", lines)
    options = ZipnumOptions(shards=3, points=(b"a", b"b"), quiet=True)
    build_cluster([str(path)], tmp_path / "C", options, Failures())
    assert found(tmp_path / "C", against=[str(path)]) == []
    (tmp_path / "C/cluster.json").unlink()
    assert found(tmp_path / "C") == []


def test_a_job_s_unfinished_cluster_of_shards_and_parts_passes(cluster: Path) -> None:
    for path in [*cluster.glob("cluster.*"), *cluster.glob("splits.*")]:
        path.unlink()
    assert found(cluster) == []
    (cluster / "part-00001").unlink()
    assert any("part-00001: cannot be read" in line for line in found(cluster))


def each_changed_byte(cluster: Path, tries: int, seed: int) -> Iterator[tuple[Path, int, bytes]]:
    """Flip a bit at random offsets of every file, one at a time. Each file is restored before the next one."""
    source = random.Random(seed)
    for path in sorted(cluster.iterdir()):
        data = path.read_bytes()
        for place in sorted(source.sample(range(len(data)), min(tries, len(data)))):
            changed = bytearray(data)
            changed[place] ^= 1 << source.randrange(8)
            path.write_bytes(changed)
            yield path, place, data
        path.write_bytes(data)


def test_with_the_manifest_every_changed_byte_is_found(cluster: Path) -> None:
    missed = [
        (path.name, place, data[place - 20 : place + 1])
        for path, place, data in each_changed_byte(cluster, 60, 1)
        if not found(cluster, processes=1)
    ]
    assert missed == []


def test_without_it_every_byte_is_found_that_alters_a_line_an_offset_or_the_order(foreign: Path) -> None:
    whole = shards_of(foreign)
    missed = []
    for path, place, _ in each_changed_byte(foreign, 150, 2):
        if not found(foreign, processes=1) and (
            path.name == "cluster.idx" or lines_or_none(foreign) != whole
        ):
            missed.append((path.name, place))
    assert missed == []


def lines_or_none(cluster: Path) -> list[bytes] | None:
    """The shards as Python's own reader reads them. Some bytes of a gzip header do not affect the content."""
    try:
        return shards_of(cluster)
    except (OSError, EOFError, zlib.error):
        return None


@pytest.mark.parametrize("with_manifest", [True, False])
def test_files_that_are_cut_or_go_on_are_found(with_manifest: bool, cluster: Path) -> None:
    if not with_manifest:
        (cluster / "cluster.json").unlink()
    missed = []
    for path in sorted(cluster.iterdir()):
        if not with_manifest and path.name.startswith("splits"):
            continue
        data = path.read_bytes()
        changes = [
            data[:0],
            data[:1],
            data[: len(data) // 2],
            data[:-1],
            data + b"\n",
            data + data,
            data + b"\0",
        ]
        for number, changed in enumerate(changes):
            path.write_bytes(changed)
            if not found(cluster, processes=1):
                missed.append((path.name, number))
        path.write_bytes(data)
    assert missed == []


def test_absent_files_are_found(cluster: Path) -> None:
    for path in sorted(cluster.iterdir()):
        data = path.read_bytes()
        path.unlink()
        told = found(cluster)
        assert any(path.name in line for line in told) == (path.name != "cluster.json"), (path.name, told)
        path.write_bytes(data)


@pytest.mark.parametrize("shard", [0, 1, SHARDS - 1])
def test_an_absent_shard_is_found_without_the_manifest(shard: int, foreign: Path) -> None:
    shard_files(foreign)[shard].unlink()
    (line,) = found(foreign)
    assert f"cdx-0000{shard}.gz: cannot be read" in line


@pytest.mark.parametrize("name", ["cdx-00004.gz", "part-00004", "cdx-00017.gz"])
@pytest.mark.parametrize("with_manifest", [True, False])
def test_files_of_another_shard_are_found(name: str, with_manifest: bool, cluster: Path) -> None:
    if not with_manifest:
        (cluster / "cluster.json").unlink()
    source = "cdx-00003.gz" if name.startswith("cdx") else "part-00003"
    shutil.copy(cluster / source, cluster / name)
    assert any(name in line for line in found(cluster))


@pytest.mark.parametrize("swapped", [("cdx-00001.gz", "cdx-00002.gz"), ("part-00000", "part-00003")])
@pytest.mark.parametrize("with_manifest", [True, False])
def test_swapped_files_are_found(swapped: tuple[str, str], with_manifest: bool, cluster: Path) -> None:
    if not with_manifest:
        (cluster / "cluster.json").unlink()
    swap(*(cluster / name for name in swapped))
    told = found(cluster)
    assert all(any(name in line for line in told) for name in swapped), told


def test_swapped_shards_with_an_index_that_fits_are_found(foreign: Path) -> None:
    one, other = blocks_of(foreign, 1), blocks_of(foreign, 2)
    rewrite(foreign, other, 1)
    rewrite(foreign, one, 2)
    assert any("cdx-00002.gz@0: starts with" in line for line in found(foreign))


def changed_lines(change: Callable[[list[list[bytes]]], None], cluster: Path) -> None:
    blocks = blocks_of(cluster)
    change(blocks)
    rewrite(cluster, blocks)


def swap_blocks(blocks: list[list[bytes]]) -> None:
    blocks[1], blocks[2] = blocks[2], blocks[1]


def swap_lines(blocks: list[list[bytes]]) -> None:
    blocks[1][7], blocks[1][8] = blocks[1][8], blocks[1][7]


def repeat_line(blocks: list[list[bytes]]) -> None:
    blocks[-1].insert(3, blocks[-1][3])


def repeat_last_line_of_block(blocks: list[list[bytes]]) -> None:
    blocks[1][0] = blocks[0][-1]


def drop_line(blocks: list[list[bytes]]) -> None:
    del blocks[1][5]


def drop_line_of_first(blocks: list[list[bytes]]) -> None:
    del blocks[0][5]


def add_line(blocks: list[list[bytes]]) -> None:
    blocks[1].insert(6, blocks[1][5] + b" ")


def lengthen_last(blocks: list[list[bytes]]) -> None:
    blocks[-1] += [b"com,host%d)/ 2020 {}" % number for number in range(990, 990 + NUMLINES)]
    blocks[-1].sort()


def repeat_block(blocks: list[list[bytes]]) -> None:
    blocks.insert(1, blocks[1])


def empty_line(blocks: list[list[bytes]]) -> None:
    blocks[0][0] = b""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (swap_blocks, "block 3: line 1 is out of order"),
        (swap_lines, "block 2: line 9 is out of order"),
        (repeat_line, "line 5 repeats the previous line"),
        (repeat_last_line_of_block, "block 2: line 1 repeats the previous line"),
        (drop_line, "block 2: has 39 lines, expected 40"),
        (drop_line_of_first, "lines, expected 39"),
        (add_line, "block 2: has 41 lines, expected 40"),
        (lengthen_last, "expected at most 40"),
        (repeat_block, "block 3: line 1 is out of order"),
        (empty_line, "block 1: line 1 is empty"),
    ],
)
def test_lines_that_were_changed_with_all_indexes_made_anew_are_found(
    change: Callable[[list[list[bytes]]], None], reason: str, foreign: Path
) -> None:
    changed_lines(change, foreign)
    told = found(foreign)
    assert any(reason in line and "cdx-00001.gz@" in line for line in told), told


def test_bytes_between_blocks_and_blocks_without_lines_are_found(foreign: Path) -> None:
    shard = shard_files(foreign)[1]
    data, rows = shard.read_bytes(), [row for row in index_rows(foreign) if row[1] == b"cdx-00001.gz"]
    for extra in (b"\0", b"garbage", gzip.compress(b""), gzip.compress(b"\n")):
        for place in (0, rows[1][2], len(data)):
            shard.write_bytes(data[:place] + extra + data[place:])
            assert found(foreign), (extra, place)


@pytest.mark.parametrize("name", ["cluster.idx", "cluster.summary", "part-00001"])
@pytest.mark.parametrize("kind", ["missing", "extra", "swapped", "offset", "length", "key", "shard"])
@pytest.mark.parametrize("with_manifest", [True, False])
def test_changed_lines_of_indexes_are_found(name: str, kind: str, with_manifest: bool, cluster: Path) -> None:
    if not with_manifest:
        (cluster / "cluster.json").unlink()
    path = cluster / name
    lines = path.read_bytes().split(b"\n")[:-1]
    columns = lines[2].split(b"\t")
    if kind == "missing":
        del lines[2]
    elif kind == "extra":
        lines.insert(2, lines[2])
    elif kind == "swapped":
        lines[1], lines[2] = lines[2], lines[1]
    else:
        column = ["key", "shard", "offset", "length"].index(kind)
        columns[column] = columns[column][:-1] + bytes((columns[column][-1] ^ 1,))
        lines[2] = b"\t".join(columns)
    path.write_bytes(b"\n".join(lines) + b"\n")
    told = found(cluster)
    assert any(name in line for line in told), told


def test_a_block_without_its_last_line_end_is_found(foreign: Path) -> None:
    shard = shard_files(foreign)[-1]
    row = index_rows(foreign)[-1]
    data = shard.read_bytes()
    last = gzip.compress(gzip.decompress(data[row[2] :])[:-1])
    shard.write_bytes(data[: row[2]] + last)
    told = [line for line in found(foreign) if "its last line has no line end" in line]
    assert len(told) == 1
    assert f"{shard.name}@{row[2]}: block " in told[0]


def test_every_damaged_block_is_named(cluster: Path) -> None:
    rows = rows_of((cluster / "part-00002").read_bytes())
    shard = cluster / "cdx-00002.gz"
    data = bytearray(shard.read_bytes())
    for number in (1, 3):
        data[rows[number].offset + 30] ^= 1
    shard.write_bytes(data)
    told = found(cluster)
    for number in (1, 3):
        place = f"cdx-00002.gz@{rows[number].offset}: block {number + 1}: "
        assert any(place in line for line in told), told


def test_a_cluster_json_that_the_server_does_not_deliver_is_no_absent_one(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it only lines, offsets and order would be checked."""
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    with serving() as server:
        for path in cluster.iterdir():
            server.add(f"/C/{path.name}", path.read_bytes())
        manifest = server.files["/C/cluster.json"]
        for status, reason, ends in (
            (503, "did not answer (503) after 12 tries", 3),
            (501, "501 Not Implemented", 1),
        ):
            manifest.statuses = [status] * 999
            (line,) = found(f"{server.url}/C")
            assert line.startswith(f"{server.url}/C/cluster.json: ")
            assert reason in line
            assert main(["verify", f"{server.url}/C"]) == ends
        manifest.statuses = [403] * 999  # buckets answer so for a missing file
        assert found(f"{server.url}/C") == []


def test_a_cluster_behind_http_is_verified(cluster: Path) -> None:
    with serving() as server:
        for path in cluster.iterdir():
            server.add(f"/C/{path.name}", path.read_bytes())
        url = f"{server.url}/C"
        assert found(url) == []
        body = bytearray(server.files["/C/cdx-00003.gz"].body)
        body[-1] ^= 1
        server.files["/C/cdx-00003.gz"].body = bytes(body)
        assert any("cdx-00003.gz@" in line for line in found(url))
        del server.files["/C/cdx-00001.gz"]
        assert any("cdx-00001.gz" in line for line in found(url))
