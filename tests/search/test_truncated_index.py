"""Lookups in a cluster whose index misses lines give an error, not a shorter answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import InputError
from cdxmill.formats.clusters.zipnum import INDEX, MANIFEST
from cdxmill.search.lookup import lookup
from tests.conftest import RunCdxmill
from tests.storage.range_server import serving

from ..material.cdx_files import many_lines, write_plain
from ..material.clusters import write_raw_cluster

ALL = (b"", b"\xff")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, run_cdxmill: RunCdxmill) -> Path:
    directory = tmp_path_factory.mktemp("made")
    lines = write_plain(directory / "a.cdxj", many_lines(400))
    assert (
        run_cdxmill("zipnum", "-q", "-s", "2", "--numlines", "10", "-o", directory / "C", lines).returncode
        == 0
    )
    return directory / "C"


def blocks_of(cluster: str | Path) -> int:
    """The blocks of a cluster, as a lookup of all URLs finds them."""
    with open_cluster(cluster) as reader:
        return sum(1 for _ in reader.index.blocks(b""))


def copied(made: Path, directory: Path, index: bytes, *without: str) -> Path:
    """The cluster with another index, without some of its files."""
    for path in made.iterdir():
        if path.name not in without and path.is_file():
            (directory / path.name).write_bytes(path.read_bytes())
    (directory / INDEX).write_bytes(index)
    return directory


def before_the_number(index: bytes) -> bytes:
    lines = index.splitlines(keepends=True)
    return b"".join(lines[:5]).rpartition(b"\t")[0]


def at_a_line(index: bytes) -> bytes:
    return b"".join(index.splitlines(keepends=True)[:5])


def in_a_number(index: bytes) -> bytes:
    return index[:-2]


def without_line_end(index: bytes) -> bytes:
    return index[:-1]


def flipped_line_end(index: bytes) -> bytes:
    lines = index.splitlines(keepends=True)
    return b"".join([*lines[:3], lines[3].replace(b"\n", b"\x0e"), *lines[4:]])


def without_a_line(index: bytes) -> bytes:
    lines = index.splitlines(keepends=True)
    return b"".join(lines[:3] + lines[4:])


DAMAGES = [before_the_number, at_a_line, in_a_number, without_line_end, flipped_line_end, without_a_line]


@pytest.mark.parametrize("without", [(), (MANIFEST,)], ids=["manifest", "no-manifest"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_local_index_that_misses_lines_is_an_error(
    damage: object, without: tuple[str, ...], made: Path, tmp_path: Path
) -> None:
    assert callable(damage)
    index = (made / INDEX).read_bytes()
    assert blocks_of(copied(made, tmp_path, index, *without)) == index.count(b"\n") > 30
    with pytest.raises(InputError, match="index"):
        blocks_of(copied(made, tmp_path, damage(index), *without))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_remote_index_that_misses_lines_is_an_error(
    damage: object, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(damage)
    directory = copied(made, tmp_path, damage((made / INDEX).read_bytes()))
    monkeypatch.setenv("CDXMILL_CACHE", "off")
    with serving() as server:
        for path in directory.iterdir():
            server.add(f"/{path.name}", path.read_bytes())
        with pytest.raises(InputError, match="index"):
            blocks_of(server.url)


def url_of(line: bytes) -> str:
    """The URL of one of `many_lines`."""
    ((host, page),) = re.findall(rb"^com,(\w+)\)/page/(\d+)", line)
    return f"http://{host.decode()}.com/page/{page.decode()}"


@pytest.mark.parametrize(
    ("place", "other", "reason"),
    [
        (20, 25, "the index is not sorted after KEY"),
        (64, 249, "the index is not sorted: KEY is out of order"),  # each is the first line of its page
        (397, 398, "the index is not sorted: KEY is out of order"),
    ],
)
def test_an_index_out_of_order_is_an_error_or_that_part_is_not_needed(
    place: int, other: int, reason: str, tmp_path: Path
) -> None:
    lines = sorted(many_lines(400))
    cluster = tmp_path / "C"
    write_raw_cluster(cluster, lines, 1)
    index = (cluster / INDEX).read_bytes().splitlines(keepends=True)
    index[place], index[other] = index[other], index[place]
    (cluster / INDEX).write_bytes(b"".join(index))
    errors = set()
    for line in lines:
        try:
            assert list(lookup(cluster, url_of(line))) == [line]
        except InputError as error:
            errors.add(re.sub("b'.*'", "KEY", error.reason))
    assert errors == {reason}


def test_a_summary_without_numbers_is_read(made: Path, tmp_path: Path) -> None:
    lines = [line.rpartition(b"\t")[0] + b"\n" for line in (made / INDEX).read_bytes().splitlines()]
    directory = copied(made, tmp_path, b"", MANIFEST, "cluster.summary")
    (directory / INDEX).rename(directory / "cluster.summary")
    (directory / "cluster.summary").write_bytes(b"".join(lines))
    assert blocks_of(directory) == len(lines)
    (directory / "cluster.summary").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError, match="but the shard has"):
        blocks_of(directory)
