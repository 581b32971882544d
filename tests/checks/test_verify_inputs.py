"""`cdxmill verify --against` and `--archives`: lines are compared with the inputs, and with the records."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions

from ..material.cdx_files import many_lines, write_gzip, write_plain
from ..material.clusters import shards_of
from .checking import Told, found, swap

if TYPE_CHECKING:
    from tests.conftest import BuildCluster, RunCdxmill


def test_lines_are_compared_with_the_inputs(made: Path, cluster: Path) -> None:
    lines = sorted(set(many_lines(900)))
    given = write_gzip(made / "given.cdxj.gz", [*lines[5:], b"com,aaa)/ 2020 {}", b"org,zzz)/ 2020 {}"])
    told = found(cluster, against=[str(given)], processes=2)
    assert told == [
        f"{cluster}: 2 lines of the inputs missing; the first one: {b'com,aaa)/ 2020 {}'!r}",
        f"{cluster}: 5 lines not in the inputs; the first one: {lines[0]!r}",
    ]


strange_key = st.binary(min_size=1, max_size=12).filter(lambda key: not set(b"\n\0 ").intersection(key))
hostile = st.builds(lambda key: key + b" 2020 {}", strange_key) | st.sampled_from(
    [
        b"com,a)/\t 2020 {}",
        b"com,a)/\x08 2020 {}",
        b"com,ex\xffample)/ 2020 {}",
        b"com,a)/  {}",
        b"x" * 300_000 + b" 2020 {}",
    ]
)


@settings(max_examples=15, deadline=None)
@given(st.lists(hostile, max_size=30), st.integers(1, 4), st.sampled_from([1, 2, 3000]))
def test_clusters_of_hostile_lines_pass(lines: list[bytes], shards: int, numlines: int) -> None:
    with TemporaryDirectory() as scratch:
        path = write_plain(Path(scratch, "a.cdxj"), [b"com,example)/ 2020 {}", *lines])
        directory = Path(scratch, "C")
        build_cluster(
            [str(path)], directory, ZipnumOptions(shards=shards, block_lines=numlines, quiet=True), Told()
        )
        assert found(directory, against=[str(path)]) == []
        (directory / "cluster.json").unlink()
        assert found(directory, against=[str(path)]) == []


def test_a_corrupt_input_is_reported(made: Path, cluster: Path) -> None:
    data = (made / "inputs/0.cdxj.gz").read_bytes()
    (cluster.parent / "cut.cdxj.gz").write_bytes(data[:-9])
    told = found(cluster, against=[str(cluster.parent / "cut.cdxj.gz")])
    assert "none of its lines were compared" in told[0]
    assert "900 lines not in the inputs" in told[1]


def test_a_damaged_cluster_is_not_compared(made: Path, cluster: Path, run_cdxmill: RunCdxmill) -> None:
    shard = cluster / "cdx-00000.gz"
    shard.write_bytes(shard.read_bytes()[:-9])
    done = run_cdxmill("verify", cluster, "--against", made / "inputs")
    assert done.returncode == 1
    assert b"lines were not compared with the inputs" in done.stderr
    assert not done.stderr.endswith(b"compared with the inputs\n")


@pytest.fixture
def of_archives(build_cluster: BuildCluster, pywb_warcs: Path, tmp_path: Path) -> Path:
    """A cluster and its archives: gzip and plain, WARC and ARC."""
    (tmp_path / "warcs").mkdir()
    for name in ("iana.warc.gz", "example.warc.gz", "example.arc.gz", "example.arc", "post-test.warc.gz"):
        shutil.copy(pywb_warcs / name, tmp_path / "warcs" / name)
    return build_cluster(tmp_path / "C", [tmp_path / "warcs"], 3, "-q", "--numlines", "20").directory


def test_every_line_matches_its_record(of_archives: Path, run_cdxmill: RunCdxmill) -> None:
    warcs = of_archives.parent / "warcs"
    lines = b"".join(shards_of(of_archives)).count(b"\n")
    done = run_cdxmill("verify", of_archives, "--archives", warcs)
    assert done.returncode == 0, done.stderr
    assert b"%d records read" % lines in done.stderr
    done = run_cdxmill("verify", of_archives, "--archives", warcs, "--sample", "9")
    assert done.stderr.endswith(b"9 records read\n")


def test_archives_with_other_records_are_reported(of_archives: Path) -> None:
    warcs = of_archives.parent / "warcs"
    swap(warcs / "iana.warc.gz", warcs / "example.warc.gz")
    told = found(of_archives, archives=str(warcs))
    assert any("iana.warc.gz@" in line for line in told)
    (warcs / "iana.warc.gz").unlink()
    told = found(of_archives, archives=str(warcs))
    assert any("iana.warc.gz: cannot be read" in line for line in told)
    assert any("more lines do not match their records" in line for line in told)


@pytest.mark.parametrize("path", ["absent", "C/cluster.loc/x"])
def test_a_path_without_archives_is_wrong_usage(
    path: str, of_archives: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("verify", "-q", of_archives, "--archives", of_archives.parent / path)
    assert done.returncode == 2
    assert b"neither a directory of archives, nor a WACZ, nor a path index" in done.stderr


@pytest.mark.parametrize("options", [["--sample", "3"], ["--convert"], ["--sample", "0", "--archives", "."]])
def test_options_that_lack_another_are_wrong_usage(
    options: list[str], cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    assert run_cdxmill("verify", cluster, *options).returncode == 2


@pytest.mark.parametrize("what", ["empty", "absent"])
def test_a_path_without_a_cluster_is_reported_in_one_line(
    what: str, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "empty").mkdir()
    done = run_cdxmill("verify", tmp_path / what)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"not a ZipNum cluster" in done.stderr
