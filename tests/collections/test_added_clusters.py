"""`add` of clusters, alone or with files: blocks that are copied or sorted in, what is counted, listed and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import cdxmill
from cdxmill.commands.collections.add import add
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.inputs.named import Input
from cdxmill.options.collections import Adding
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.storage.location import Location

from .test_added_archives import built, cdx, here, keys, listed, log, run

__all__ = ["built", "here"]


def other(name: str, *hosts: str, numlines: int = 3000) -> str:
    """A cluster of some pages, which lists its archive."""
    lines = cdx(f"{name}.cdxj", *hosts, archive=f"{name}.warc.gz")
    cdxmill.zipnum(lines, output=name, shards=1, processes=1, numlines=numlines)
    Path(name, "archives.tsv").write_text(f"{name}.warc.gz\t/archives/{name}.warc.gz\n")
    return name


@pytest.mark.parametrize("numlines", [3000, 7], ids=["copied", "sorted"])
@pytest.mark.parametrize("files", [[], ["f.cdxj"]])
def test_a_cluster_is_added_with_its_archives(numlines: int, files: list[str]) -> None:
    """With files, too. What is excluded is counted in each way."""
    Path("C/exclude.txt").write_text("x.com\n")
    for name in files:
        cdx(name, "f", "x", archive="f.warc.gz")
    found, told = run(other("D", "d", "e", "x", numlines=numlines), *files, cdx=True)
    assert (found.counts.added, found.excluded, told) == (2 + len(files), 1 + len(files), [])
    assert keys() == ["com,a)/", "com,d)/", "com,e)/", *["com,f)/"] * len(files)]
    assert listed() == ["D.warc.gz", "a/a.warc.gz"]
    (row,) = log()
    assert (row["inputs"], row["excluded"], row["added"]) == (1 + len(files), 1 + len(files), 2 + len(files))
    again, told = run("D", *files, cdx=True)
    assert (again.counts.added, again.is_changed, told, len(log())) == (0, False, [], 1)


def test_something_must_be_given() -> None:
    with pytest.raises(UsageError):
        run(cdx=True)
    assert log() == []


@pytest.mark.parametrize("numlines", [3000, 7], ids=["copied", "sorted"])
def test_a_cluster_of_another_format_is_refused(numlines: int) -> None:
    Path("new.cdx").write_text("com,b)/ 20240517010203 http://b.com/ text/html 200 D - - 9 0 b.gz\n")
    cdxmill.zipnum("new.cdx", output="D", shards=1, processes=1, numlines=numlines)
    with pytest.raises(UsageError, match="same format"):
        run("D", cdx=True)
    assert keys() == ["com,a)/"]


def test_an_engine_adds_clusters_alone() -> None:
    cdx("new.cdxj", "b")
    for name, why in (
        ("new.cdxj", "new.cdxj is not a cluster with cluster.json"),
        (other("D", "d", numlines=7), "has 7 lines per block, not 3000"),
    ):
        with pytest.raises(UsageError) as told:
            add(Adding("C", [name], cdx=True, processes=1), Failures(printed=False), engine=run_tasks)
        assert str(told.value).endswith(f"{why}, so only cdxmill add without --engine can add it")
    assert keys() == ["com,a)/"]


def test_with_an_exclusion_list_all_lines_are_looked_up() -> None:
    """The lines that tell that an archive is there may be those that were removed."""
    hosts = [f"h{number:02d}" for number in range(16)]
    run(cdx("first.cdxj", *hosts), cdx=True)
    text = Path("first.cdxj").read_text().splitlines(True)
    cdxmill.remove(
        "C", [f"{host}.com" for host in hosts if host != "h01"], exclude=True, keep_old=0, processes=1
    )
    Path("C/exclude.txt").write_text("h15.com\n")
    Path("first.cdxj").write_text("".join(text))
    found, _ = run("first.cdxj", cdx=True, mode="overlay")
    assert (found.counts.added, found.excluded) == (14, 1)
    assert keys().count("com,h01)/") == 1


def test_an_archive_with_another_content_is_told_and_one_that_cannot_be_read_is_not_listed() -> None:
    assert run("b/b.warc.gz", "c/c.warc.gz")[1] == []
    assert run("b/b.warc.gz", "c/c.warc.gz")[1] == []
    Path("b/b.warc.gz").write_bytes(Path("a/a.warc.gz").read_bytes() + Path("c/c.warc.gz").read_bytes())
    _, told = run("b/b.warc.gz", "c/c.warc.gz", again=True)
    assert told == [
        "b/b.warc.gz: note: it has changed, and the cluster keeps the lines of its earlier content; to remove"
        " them, run cdxmill remove --archives, and then add it again"
    ]
    before = listed()
    gone = Input(Location(str(Path("gone.warc.gz").absolute())), "gone.warc.gz", "gone.warc.gz")
    failures = Failures(printed=False)
    add(Adding("C", ["nowhere"], processes=1, keep_old=0), failures, [gone])
    assert [one.path for one in failures.items] == ["gone.warc.gz"]
    assert listed() == before


def test_an_archive_whose_state_cannot_be_asked_for_counts_as_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run("b/b.warc.gz")

    def failing(entry: object) -> str:
        raise InputError("b/b.warc.gz", "input/output error")

    monkeypatch.setattr("cdxmill.commands.collections.add.state_of", failing)
    (said,) = run("b/b.warc.gz", again=True)[1]
    assert said.startswith("b/b.warc.gz: note: it has changed, ")


def test_indexes_are_not_written_through_a_link_of_somebody() -> None:
    for path in Path("C/cdx").iterdir():
        path.unlink()
    Path("C/cdx").rmdir()
    Path("mine").mkdir()
    Path("C/cdx").symlink_to(Path("mine").absolute())
    with pytest.raises((UsageError, StoppedError)):
        run("b/b.warc.gz")
    assert list(Path("mine").iterdir()) == []
    assert keys() == ["com,a)/"]


def test_a_cluster_of_another_tool_is_adopted_first() -> None:
    for name in ("cluster.json", "splits.txt", "splits.seq"):
        Path("C", name).unlink(missing_ok=True)
    found, told = run("b/b.warc.gz")
    assert found.counts.added == 1
    assert told[0].endswith("note: has no cluster.json, so all of it is checked first")


@pytest.mark.parametrize("numlines", [3000, 7], ids=["copied", "sorted"])
def test_a_cluster_that_is_refused_lists_no_archive(numlines: int) -> None:
    run(other("D", "d", "e"), cdx=True)
    found, told = run(other("E", "d", "e", numlines=numlines), other("F", "f", numlines=numlines), cdx=True)
    assert (found.counts.added, listed()) == (1, ["D.warc.gz", "F.warc.gz", "a/a.warc.gz"])
    assert [text.partition(",")[0] for text in told] == ["E.warc.gz: has the records of D.warc.gz"]
