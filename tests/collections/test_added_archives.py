"""`add` from end to end: archives, files and clusters that are new, known, excluded or empty, and what the cluster lists."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.cluster import change
from cdxmill.cluster.write import read_record
from cdxmill.commands.collections import add as module
from cdxmill.commands.collections.add import add
from cdxmill.commands.collections.change_shards import make_changeable
from cdxmill.commands.collections.compact import compact
from cdxmill.commands.collections.summary import ChangeSummary
from cdxmill.errors import UsageError
from cdxmill.inputs.named import Input
from cdxmill.options.collections import Adding, Compacting
from cdxmill.outputs.names import unique_name
from cdxmill.running.failures import Failures
from cdxmill.running.processes import run_tasks
from cdxmill.storage.location import Location, locate

from ..commands.test_copy_unit import HTTP, packed, record


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster C of the archive w/a.warc.gz; and archives b, c, with a page each, beside it."""
    place = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name in "abc":
            (place / name).mkdir()
            data = packed(record("response", f"http://{name}.com/", more=HTTP))
            (place / f"{name}/{name}.warc.gz").write_bytes(data)
        assert main(["build", "-q", "-p", "1", "-s", "1", "-d", ".", "-o", "C", "a/a.warc.gz"]) == 0
    return place


@pytest.fixture(autouse=True)
def here(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    Path(tmp_path / "C/cluster.loc").write_text(f"cdx-00000.gz\t{tmp_path}/C/cdx-00000.gz\n")
    places = tmp_path / "C/archives.tsv"
    places.write_text(places.read_text().replace(str(built), str(tmp_path)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(change, "LOCATIONS_FIRST", 0)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def run(*inputs: str, **options: Any) -> tuple[ChangeSummary, list[str]]:
    """The summary, and the failures and notes."""
    told: list[str] = []
    asked = Adding("C", list(inputs), **{"processes": 1, "keep_old": 0, **options})
    asked.quiet = True
    return add(asked, Failures(write=told.append)), told


def keys() -> list[str]:
    with cdxmill.Cluster("C") as opened:
        return [line.decode().split(" ")[0] for lines in opened.lines("*") for line in lines]


def listed() -> list[str]:
    return [row.split("\t")[0] for row in Path("C/archives.tsv").read_text().splitlines()]


def log() -> list[dict[str, Any]]:
    path = Path("C/changes.jsonl")
    return [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []


def cdx(name: str, *hosts: str, archive: str = "x.warc.gz") -> str:
    """A file of lines."""
    rows = [
        f'com,{host})/ 20240517010203 {{"url": "http://{host}.com/", "digest": "D", "length": "9", "offset": "{number}", "filename": "{archive}"}}\n'
        for number, host in enumerate(sorted(hosts))
    ]
    Path(name).write_text("".join(rows))
    return name


def test_new_archives_are_indexed_listed_and_logged() -> None:
    summary, told = run("b/b.warc.gz", "c/c.warc.gz")
    assert (summary.counts.added, summary.excluded, told) == (2, 0, [])
    assert keys() == ["com,a)/", "com,b)/", "com,c)/"]
    assert listed() == ["a/a.warc.gz", "b.warc.gz", "c.warc.gz"]
    names = {unique_name(str(Path(f"{name}/{name}.warc.gz").absolute())) for name in "bc"}
    assert names < {path.name for path in Path("C/cdx").iterdir()}
    files = read_record(locate("C"))
    assert files is not None and {f"cdx/{name}" for name in names} < set(files.files)
    assert "archives.tsv" in files.files and "cdx/.outputs.tsv" in " ".join(files.files)
    (row,) = log()
    assert (row["command"], row["inputs"], row["added"]) == ("add", 2, 2)
    assert "excluded" not in row


def test_what_is_there_already_changes_nothing() -> None:
    run("b/b.warc.gz")
    run("b/b.warc.gz")  # it deletes what was kept for readers
    before = {path: path.read_bytes() for path in Path("C").glob("*") if path.is_file()}
    summary, told = run("b/b.warc.gz")
    assert (summary.counts.added, summary.is_changed, told) == (0, False, [])
    assert {path: path.read_bytes() for path in Path("C").glob("*") if path.is_file()} == before


def test_an_archive_at_another_place_is_listed_and_nothing_is_written() -> None:
    shutil.copytree("a", "z/a")
    summary, told = run("z/a/a.warc.gz", dir_root="z")
    assert (summary.counts.added, told) == (0, [])
    (row,) = Path("C/archives.tsv").read_text().splitlines()
    assert row.split("\t")[1:] == sorted(
        [str(Path("a/a.warc.gz").absolute()), str(Path("z/a/a.warc.gz").absolute())]
    )
    assert len(log()) == 1


def test_an_archive_that_is_refused_leaves_no_index() -> None:
    """A copy is added if it is asked for."""
    shutil.copyfile("a/a.warc.gz", "b/copy.warc.gz")
    there = sorted(Path("C/cdx").glob("*.cdx.gz"))
    summary, told = run("b/copy.warc.gz", "c/c.warc.gz")
    assert summary.counts.added == 1
    assert told == [
        "copy.warc.gz: has the records of a/a.warc.gz, which is in the cluster, so it was not added;"
        " use --again to add it under this name, too"
    ]
    own = unique_name(str(Path("c/c.warc.gz").absolute()))
    assert sorted(Path("C/cdx").glob("*.cdx.gz")) == sorted([*there, Path("C/cdx", own)])
    assert listed() == ["a/a.warc.gz", "c.warc.gz"]
    summary, told = run("b/copy.warc.gz", again=True)
    assert (summary.counts.added, told) == (1, [])
    assert listed() == ["a/a.warc.gz", "c.warc.gz", "copy.warc.gz"]


def test_an_archive_that_cannot_be_read_whole_is_a_failure_of_the_record() -> None:
    data = Path("b/b.warc.gz").read_bytes()
    Path("b/b.warc.gz").write_bytes(data + data[:-9])
    summary, told = run("b/b.warc.gz", "c/c.warc.gz")
    assert (len(told), keys()) == (1, ["com,a)/", "com,b)/", "com,c)/"])
    found = read_record(locate("C"))
    assert found is not None and len(found.failures) == 1
    assert summary.counts.added == 2


@pytest.mark.parametrize("mode", [None, "overlay", "rewrite"])
def test_excluded_lines_are_counted_and_not_added(mode: str | None) -> None:
    Path("C/exclude.txt").write_text("b.com\n")
    summary, _ = run(cdx("new.cdxj", "b", "c", "d"), cdx=True, mode=mode)
    assert (summary.counts.added, summary.excluded) == (2, 1)
    assert (bool(summary.overlay), summary.overlay) == (
        mode == "overlay",
        "--mode overlay" if mode == "overlay" else "",
    )
    assert keys() == ["com,a)/", "com,c)/", "com,d)/"]
    (row,) = log()
    assert (row["inputs"], row["excluded"]) == (1, 1)
    again, _ = run("new.cdxj", cdx=True, mode=mode)
    assert (again.counts.added, again.counts.present, again.excluded) == (0, 2, 1)
    assert len(log()) == 1


@pytest.mark.parametrize("mode", ["overlay", "rewrite"])
@pytest.mark.parametrize(("hosts", "added", "present"), [("ab", 2, 0), ("abc", 2, 1)])
def test_lines_that_are_there_are_not_added_again(mode: str, hosts: str, added: int, present: int) -> None:
    """Nor if they are in an overlay."""
    if present:
        run(cdx("first.cdxj", "c"), cdx=True, mode="overlay")
    found, _ = run(cdx("new.cdxj", *hosts), cdx=True, mode=mode, again=True)
    if present:  # the offset of c is another one
        assert (found.counts.added, found.counts.present) == (3, 0)
    else:
        assert (found.counts.added, found.counts.present) == (added, present)
    found, _ = run("new.cdxj", cdx=True, mode=mode, again=True)
    assert (found.counts.added, found.counts.present) == (0, len(hosts))
    assert keys().count("com,a)/") == 2


@pytest.mark.parametrize("before", ["overlay", "rewrite"])
@pytest.mark.parametrize("mode", ["overlay", "rewrite"])
def test_of_several_lines_those_that_are_there_are_counted(mode: str, before: str) -> None:
    cdx("new.cdxj", "d", "e", "f")
    lines = Path("new.cdxj").read_bytes().splitlines(keepends=True)
    Path("first.cdxj").write_bytes(b"".join(lines[:2]))
    run("first.cdxj", cdx=True, mode=before)
    found, _ = run("new.cdxj", cdx=True, mode=mode)
    assert (found.counts.added, found.counts.present) == (1, 2)


def test_an_empty_list_adds_nothing_and_inputs_must_be_there() -> None:
    Path("empty.cdxj").touch()
    summary, told = run("empty.cdxj", cdx=True)
    assert (summary.counts.added, told, log()) == (0, [], [])
    _, told = run("empty.cdxj", "absent.cdxj", cdx=True)
    assert len(told) == 1 and told[0].startswith("absent.cdxj: ")


def test_lines_of_another_format_are_refused() -> None:
    Path("new.cdx").write_text("com,b)/ 20240517010203 http://b.com/ text/html 200 D - - 9 0 b.gz\n")
    with pytest.raises(UsageError, match="same format"):
        run("new.cdx", cdx=True)
    assert keys() == ["com,a)/"]


def test_inputs_that_were_searched_before_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_archives", lambda *given: pytest.fail("they were searched before"))
    archive = Input(Location(str(Path("b/b.warc.gz").absolute())), "b.warc.gz", "b.warc.gz")
    asked = Adding("C", ["nowhere"], processes=1, keep_old=0)
    assert add(asked, Failures(printed=False), [archive]).counts.added == 1


def test_an_engine_gets_absolute_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machines have other current directories."""
    cdxmill.zipnum(cdx("new.cdxj", "b"), output="D", shards=1, processes=1)
    seen: list[str] = []

    def engine(work: Any, tasks: Any, processes: int, tick: Any) -> Any:
        seen.extend(
            str(one.place if hasattr(one, "place") else one.others.clusters[0].place) for one in tasks
        )
        return run_tasks(work, tasks, processes, tick)

    asked = Adding("C", ["D"], cdx=True, processes=1, keep_old=0)
    assert add(asked, Failures(printed=False), engine=engine).counts.added == 1
    assert {*seen} == {str(Path("D").absolute())}
    assert len(seen) == 2


def test_kept_shards_are_deleted_when_their_time_is_over() -> None:
    run("b/b.warc.gz", keep_old=3600)
    first = sorted(path.name for path in Path("C").glob("cdx-*.gz"))
    assert len(first) == 2
    run("c/c.warc.gz", keep_old=3600)
    assert len(list(Path("C").glob("cdx-*.gz"))) == 3
    run("c/c.warc.gz", keep_old=0)
    assert len(list(Path("C").glob("cdx-*.gz"))) == 1


def test_a_cluster_of_another_tool_is_made_changeable_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    make_changeable(Adding("C", ["x"], processes=1), Failures(write=told.append))
    assert told == []
    with pytest.raises(UsageError, match="cannot be written or listed"):
        make_changeable(Adding("http://127.0.0.1:9/C", ["x"]), Failures(write=told.append))
    for name in ("cluster.json", "splits.txt", "splits.seq"):
        Path("C", name).unlink(missing_ok=True)
    asked = Adding("C", ["x"], processes=1)
    asked.quiet = True
    make_changeable(asked, Failures(write=told.append))
    assert len(told) == 1 and "has no cluster.json" in told[0]
    assert gzip.decompress(Path("C/cdx-00000.gz").read_bytes()).startswith(b"com,a)/")


def test_compacting_moves_the_lines_of_overlays_and_then_has_nothing_to_do() -> None:
    run(cdx("new.cdxj", "a", "b"), cdx=True, mode="overlay", again=True)
    asked = Compacting("C", keep_old=0, processes=1)
    asked.quiet = True
    found = compact(asked, Failures(printed=False))
    assert (found.folded, found.counts.added, found.counts.present, found.is_changed) == (1, 0, 0, True)
    assert (str(found).partition(";")[0], found.what) == ("1 overlay moved to the shards", "file")
    assert (keys(), found.manifest.overlays) == (["com,a)/", "com,a)/", "com,b)/"], ())
    rows = log()
    assert [(row["command"], row["added"]) for row in rows] == [("add", 2), ("compact", 0)]
    again = compact(asked, Failures(printed=False))
    assert (again.folded, again.is_changed, log()) == (0, False, rows)
    assert str(again) == "0 lines added; unchanged"
    assert len(list(Path("C").glob("cdx-*.gz"))) == 1
    record_of = read_record(locate("C"))
    assert record_of is not None and record_of[0] == "change 2"


@pytest.mark.parametrize("first", ["overlay", "rewrite"])
@pytest.mark.parametrize("second", ["overlay", "rewrite"])
def test_lines_of_shards_and_of_overlays_are_known_in_each_way(first: str, second: str) -> None:
    name = cdx("new.cdxj", "b", "c")
    assert run(name, cdx=True, mode=first)[0].counts.added == 2
    found, _ = run(name, cdx=True, mode=second)
    assert (found.counts.added, found.counts.present, found.is_changed) == (0, 2, False)
    assert keys() == ["com,a)/", "com,b)/", "com,c)/"]
