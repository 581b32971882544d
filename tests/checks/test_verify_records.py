"""`cdxmill verify --archives` reads the records of all lines, or of those of a sample, and reports each that is wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions

from ..material.cdx_files import write_plain
from ..material.clusters import write_raw_cluster
from .checking import Told, found


def line_of(number: int) -> bytes:
    return (
        b'com,a)/%02d 20200101000000 {"url": "http://a.com/%02d", "filename": "%02d.warc", "offset": "0", "length": "9"}'
        % (number, number, number)
    )


@pytest.fixture
def two_shards(tmp_path: Path) -> Path:
    """10 lines in blocks of 3, and 9 lines in blocks of 3. No archive exists."""
    path = write_plain(tmp_path / "a.cdxj", [line_of(number) for number in range(19)])
    options = ZipnumOptions(shards=2, points=(line_of(10),), block_lines=3, quiet=True)
    build_cluster([str(path)], tmp_path / "C", options, Told())
    (tmp_path / "archives").mkdir()
    return tmp_path / "C"


def missing(cluster: Path, sample: int | None) -> list[str]:
    """The file names of the archives that `verify` looked for."""
    told = found(cluster, archives=str(cluster.parent / "archives"), sample=sample, processes=1)
    for line in told:
        name = line.partition(".warc:")[0].rpartition("/")[2]
        assert f"(capture of http://a.com/{name} at 20200101000000)" in line
    return [line.partition(":")[0].rpartition("/")[2] for line in told]


@pytest.mark.parametrize("sample", [None, 1, 7, 18, 19, 20])
def test_a_sample_has_that_many_lines_of_all_shards_each_once(sample: int | None, two_shards: Path) -> None:
    told = missing(two_shards, sample)
    assert len(set(told)) == len(told) == min(sample or 19, 19)
    assert set(told) <= {f"{number:02d}.warc" for number in range(19)}
    assert told == missing(two_shards, sample), "the same cluster has the same sample"


def test_a_sample_is_of_whole_blocks_and_of_a_shard_with_a_single_one(tmp_path: Path) -> None:
    (tmp_path / "archives").mkdir()
    write_raw_cluster(tmp_path / "C", [line_of(number) for number in range(5)])
    assert len(set(missing(tmp_path / "C", 4))) == 4


@pytest.mark.parametrize(("wrong", "more"), [(20, None), (22, "2 more lines do not match their records")])
def test_of_many_wrong_lines_the_first_20_are_reported_and_the_others_counted(
    wrong: int, more: str | None, tmp_path: Path
) -> None:
    (tmp_path / "archives").mkdir()
    write_raw_cluster(tmp_path / "C", [line_of(number) for number in range(wrong)])
    told = found(tmp_path / "C", archives=str(tmp_path / "archives"))
    assert sum("cannot be read" in line for line in told) == 20
    assert told[20:] == ([f"{tmp_path}/C/cdx-00000.gz: {more}"] if more else [])


def test_a_line_without_a_record_is_reported_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "archives").mkdir()
    write_raw_cluster(tmp_path / "C", [b'com,a)/ 2020 {"url": "http://a.com/"}'])
    (told,) = found(tmp_path / "C", archives=str(tmp_path / "archives"))
    assert told.startswith("com,a)/ 2020 : ")


def test_archives_that_do_not_exist_are_wrong_usage_whatever_the_cluster_has(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "C", [line_of(0)])
    (tmp_path / "C/cdx-00000.gz").write_bytes(gzip.compress(b""))
    told = found(tmp_path / "C", archives=str(tmp_path / "absent"))
    assert "neither a directory of archives, nor a WACZ, nor a path index" in told[-1]


def test_records_of_a_corrupt_shard_are_not_read(two_shards: Path) -> None:
    shard = two_shards / "cdx-00001.gz"
    shard.write_bytes(shard.read_bytes()[:-1])
    told = found(two_shards, archives=str(two_shards.parent / "archives"), processes=1)
    assert sum("cannot be read" in line for line in told) == 10
    assert any("cdx-00001.gz@" in line for line in told)
