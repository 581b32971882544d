"""A crawl that Spark has built is added to a collection by Spark: the bytes are those of the local engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.cluster.own_run import start_run
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.collections.add import add
from cdxmill.errors import UsageError
from cdxmill.options.collections import Adding
from cdxmill.running.failures import Failures
from cdxmill.spark.engine import Engine
from cdxmill.spark.jobs import Maker
from cdxmill.storage.location import locate
from tests.material.cdx_files import many_lines, write_plain
from tests.spark.conftest import hashes

POINTS = (b"com,host010)/", b"com,host020)/", b"com,host030)/")
OPTIONS = ZipnumOptions(shards=4, points=POINTS, block_lines=50, location="/published", quiet=True)
OLD, NEW = many_lines(3000), [line for line in many_lines(3000, seed=2) if line >= POINTS[1]]


@pytest.fixture
def crawl(tmp_path: Path, engine: Engine) -> Path:
    """A cluster that Spark has built."""
    path = write_plain(tmp_path / "new.cdxj", NEW)
    options = replace(OPTIONS, make=Maker(engine), is_far=True)
    build_cluster([str(path)], str(tmp_path / "new"), options, Failures())
    (tmp_path / "new/archives.tsv").write_text("a.warc.gz\ts3://crawl/a.warc.gz\n")
    return tmp_path / "new"


def collection(place: str, tmp_path: Path) -> None:
    """A cluster in which the captures of a host are unwanted. A run that was killed has left something."""
    built, path = tmp_path / "built", write_plain(tmp_path / "old.cdxj", OLD)
    if not built.exists():
        build_cluster([str(path)], str(built), OPTIONS, Failures())
    cdxmill.publish(built, place)
    with (locate(place) / "exclude.txt").write_atomic() as file:
        file.write(b"host025.com/*\n")
    with (start_run(locate(place), "0123456789abcdef") / "cdx-00002-1.gz").write_atomic() as left:
        left.write(b"half")


def shared(place: str | Path) -> dict[str, str]:
    """The files that are the same in all places."""
    kinds = ("cdx-", "part-", "cluster.idx", "cluster.json", "archives.tsv")
    return {name: digest for name, digest in hashes(place).items() if name.startswith(kinds)}


@pytest.mark.parametrize("kind", ["path", "s3"])
def test_only_shards_that_get_lines_are_written(
    kind: str, crawl: Path, engine: Engine, s3: str, tmp_path: Path
) -> None:
    base = s3 if kind == "s3" else str(tmp_path)
    collection(f"{base}/C", tmp_path)
    collection(str(tmp_path / "local"), tmp_path)
    adding = Adding(f"{base}/C", [crawl], cdx=True)
    done = add(adding, Failures(printed=False), engine=engine.run_tasks)
    local = cdxmill.add(tmp_path / "local", crawl, cdx=True)
    wanted = [line for line in NEW if not line.startswith(b"com,host025)")]
    assert (done.counts.added, done.excluded, done.shards) == (len(wanted), len(NEW) - len(wanted), 2)
    assert (local.added, local.excluded, local.shards) == (len(wanted), len(NEW) - len(wanted), 2)
    assert shared(f"{base}/C") == shared(tmp_path / "local")
    assert not locate(f"{base}/C/.run-0123456789abcdef").exists()
    with cdxmill.Cluster(f"{base}/C") as opened:
        assert [line for lines in opened.lines("*") for line in lines] == sorted(OLD + wanted)
    assert not cdxmill.verify(f"{base}/C").failures
    again = add(adding, Failures(printed=False), engine=engine.run_tasks)
    assert (again.counts.added, again.counts.present, again.is_changed) == (0, len(wanted), False)


def test_what_spark_cannot_add_is_wrong_usage(
    crawl: Path, engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["add", "--engine", "spark", str(crawl), "a.warc.gz"]) == 2
    assert "adds clusters: run cdxmill build --engine spark" in capsys.readouterr().err
    before = hashes(crawl)
    other = ZipnumOptions(shards=1, block_lines=51, quiet=True)
    path = write_plain(tmp_path / "old.cdxj", OLD)
    build_cluster([str(path)], str(tmp_path / "other"), other, Failures())
    for given, why in (
        (path, "is not a cluster with"),
        (tmp_path / "other", "has 51 lines per block, not 50"),
    ):
        with pytest.raises(
            UsageError, match=f"{given} {why}.*, so only cdxmill add without --engine can add it"
        ):
            add(Adding(crawl, [given], cdx=True), Failures(), engine=engine.run_tasks)
    assert hashes(crawl) == before
