"""`remove` step by step: what is given, what goes, what the cluster lists afterwards, and what is written in its log."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill.cluster import change
from cdxmill.cluster.change import Change
from cdxmill.cluster.write import read_record, write_record
from cdxmill.commands.collections import remove as module
from cdxmill.commands.collections.remove import remove
from cdxmill.commands.collections.summary import ChangeSummary
from cdxmill.errors import UsageError
from cdxmill.formats.clusters.zipnum import format_path_index
from cdxmill.options.collections import Removing
from cdxmill.outputs.names import unique_name
from cdxmill.running.failures import Failures
from cdxmill.storage.location import locate

from ..material.cdx_files import cdxj

HOSTS = "abcd"
PLACES = {"a": "/w/a.warc.gz", "b": "/w/b.warc.gz", "c": "https://c.org/c.warc.gz", "x": "/w/x.warc.gz"}


def line(host: str, time: int = 20200101000000, name: str | None = None) -> bytes:
    place = json.dumps({"url": f"http://{host}.com/", "filename": f"{name or host}.warc.gz"})
    return cdxj(f"com,{host})/", time, place)


LINES = sorted(
    [*map(line, HOSTS), line("a", 20210101000000), line("d", 20220101000000, "a"), cdxj("com,z)/", rest="{}")]
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster in two shards, with archives.tsv and CDX files beside it."""
    place = tmp_path_factory.mktemp("built") / "C"
    place.with_suffix(".cdxj").write_bytes(b"\n".join([*LINES, b""]))
    place.with_suffix(".txt").write_text("com,c)/\n")
    cdxmill.zipnum(place.with_suffix(".cdxj"), output=place, splits=place.with_suffix(".txt"), processes=1)
    rows = [(f"{name}.warc.gz", where) for name, where in PLACES.items()]
    (place / "archives.tsv").write_bytes(format_path_index(rows)[0])
    (place / "cdx").mkdir()
    for name in (*map(unique_name, PLACES.values()), ".outputs.tsv"):
        (place / "cdx" / name).write_bytes(b"lines")
    record = read_record(locate(str(place)))
    assert record is not None
    files = [*record.files, *(f"cdx/{unique_name(one)}" for one in PLACES.values())]
    write_record(locate(str(place)), record._replace(files=files))
    return place


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads the cluster, and the machine stays on."""
    monkeypatch.setattr(change, "LOCATIONS_FIRST", 0)
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def cluster(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(built, tmp_path / "C"))


def run(*queries: str, **options: Any) -> ChangeSummary:
    asked = Removing("C", list(queries), **{"keep_old": 0, "processes": 1, **options})
    return remove(asked, Failures(printed=False))


def left() -> list[bytes]:
    with cdxmill.Cluster("C") as opened:
        return [one for lines in opened.lines("*") for one in lines]


def listed() -> list[str]:
    return [row.split("\t")[0][0] for row in Path("C/archives.tsv").read_text().splitlines()]


def cdx_files() -> list[str]:
    names = {unique_name(place): name for name, place in PLACES.items()}
    return sorted(names[path.name] for path in Path("C/cdx").iterdir() if path.name in names)


def log() -> list[dict[str, Any]]:
    path = Path("C/changes.jsonl")
    return [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []


def given(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("queries", "options", "gone"),
    [
        (["a.com"], {}, [0, 1]),
        (["a.com", "c.com"], {}, [0, 1, 3]),
        (["a.com"], {"from_ts": "2021"}, [1]),
        (["a.com"], {"to": "2020"}, [0]),
        ([], {"from_ts": "2021"}, [1, 5]),
        ([], {"to": "2020"}, [0, 2, 3, 4, 6]),
        ([], {"from_ts": "2021", "to": "2021"}, [1]),
        (["b.com/*"], {"match_type": "host"}, [2]),
        (["d.com"], {"archives": "a.warc.gz\n"}, [5]),
        ([], {"archives": "a.warc.gz\tmore\n\nabsent\n"}, [0, 1, 5]),
        ([], {"archives": "a.warc.gz", "to": "2020"}, [0]),
        ([], {"keys": "com,b)/\ncom,d)/ 20220101000000\n"}, [2, 5]),
        (["c.com"], {"keys": "com,b)/\n"}, [2, 3]),
        ([], {"keys": "com,a)/\ncom,d)/", "archives": "a.warc.gz"}, [0, 1, 5]),
        ([], {"keys": "com,a)/", "from_ts": "2021"}, [1]),
        ([], {"keys": ""}, []),
        (["*.com"], {"archives": "z"}, []),
    ],
)  # fmt: skip
def test_what_is_given_says_which_lines_go(
    queries: list[str], options: dict[str, Any], gone: list[int]
) -> None:
    """A dry run prints them, and changes nothing."""
    files: dict[str, Any] = {
        name: given(name, options[name]) for name in ("archives", "keys") if name in options
    }
    printed: list[bytes] = []
    dry: dict[str, Any] = {**options, **files, "dry_run": True, "processes": 1}
    asked = Removing("C", queries, **dry)
    assert remove(asked, Failures(printed=False), printed.append).counts.removed == len(gone)
    assert remove(asked, Failures(printed=False)).counts.removed == len(gone)
    assert b"".join(printed).splitlines() == [LINES[number] for number in gone]
    assert (left(), log()) == (LINES, [])
    done = run(*queries, **(options | files))
    assert done.counts.removed == len(gone)
    assert left() == [one for number, one in enumerate(LINES) if number not in gone]
    assert not list(Path("C").glob(".kept*")) or not gone


NOTHING = "nothing to remove; give QUERY, --keys, --archives, --from or --to"


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, NOTHING),
        ({"match_type": "host"}, NOTHING),
        ({"archives": "\n \t\n"}, "archives: has no names of archives"),
        ({"archives": ""}, "archives: has no names of archives"),
        ({"from_ts": "x"}, "'x'"),
    ],
)
def test_what_says_nothing_removes_nothing(options: dict[str, str], reason: str) -> None:
    if "archives" in options:
        options = {**options, "archives": given("archives", options["archives"])}
    with pytest.raises(UsageError) as told:
        run(**options)
    assert reason in str(told.value)
    assert left() == LINES


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("queries", "options", "archives", "cdx"),
    [
        ([], {"archives": "a.warc.gz\nc.warc.gz"}, "bx", "bx"),
        ([], {"archives": "x.warc.gz"}, "abc", "abcx"),
        ([], {"archives": "absent"}, "abcx", "abcx"),
        (["*.com/*"], {"archives": "a.warc.gz"}, "abcx", "bcx"),
        ([], {"archives": "a.warc.gz", "keys": "com,a)/"}, "abcx", "bcx"),
        ([], {"archives": "a.warc.gz", "from_ts": "2000"}, "abcx", "bcx"),
        ([], {"archives": "a.warc.gz", "to": "2030"}, "abcx", "bcx"),
        (["b.com"], {}, "abcx", "acx"),
        (["d.com"], {}, "abcx", "bcx"),
        (["z.com"], {}, "abcx", "abcx"),
        (["none.com"], {}, "abcx", "abcx"),
    ],
)  # fmt: skip
def test_archives_and_their_cdx_files_go_with_their_lines(
    queries: list[str], options: dict[str, Any], archives: str, cdx: str
) -> None:
    """A list of archives alone means all of each: they are not listed any more. Other CDX files would bring lines back."""
    files: dict[str, Any] = {
        name: given(name, options[name]) for name in ("archives", "keys") if name in options
    }
    before = read_record(locate("C"))
    done = run(*queries, **(options | files))
    assert "".join(listed()) == archives
    assert "".join(cdx_files()) == cdx
    assert Path("C/cdx/.outputs.tsv").exists()
    after = read_record(locate("C"))
    is_changed = bool(done.counts.removed) or archives != "abcx"
    assert (len(log()) == 1) == is_changed
    assert (after != before) == is_changed
    assert before is not None and after is not None
    gone = {f"cdx/{unique_name(PLACES[name])}" for name in PLACES if name not in cdx}
    assert set(before.files) - set(after.files) == gone


@pytest.mark.usefixtures("cluster")
def test_only_cdx_files_that_are_there_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a list of archives, nobody knows which they are."""
    names = {name: f"cdx/{unique_name(PLACES[name])}" for name in "ab"}
    Path("C", names["b"]).unlink()
    stale: list[list[str]] = []
    commit = Change.commit

    def spy(self: Change, shards: Any, record: Any, files: Any, paths: Any = ()) -> None:
        stale.append(list(paths))
        commit(self, shards, record, files, paths)

    monkeypatch.setattr(Change, "commit", spy)
    run("a.com", "b.com")
    Path("C/archives.tsv").unlink()
    run(archives=given("names", "c.warc.gz"))
    assert stale == [[names["a"]], []]
    assert not Path("C/archives.tsv").exists()


@pytest.mark.usefixtures("cluster")
def test_the_log_says_what_was_asked() -> None:
    keys, names = given("keys", "com,a)/\n"), given("names", "a.warc.gz")
    run(keys=keys, archives=names, from_ts="2021", to="2021")
    run("b.com", "c.com/", match_type="exact")
    found = log()
    for one in found:
        one.pop("time")
    assert found == [
        {"change": 1, "command": "remove", "keys": "keys", "archives": "names", "from": "2021", "to": "2021",
         "added": 0, "removed": 1},
        {"change": 2, "command": "remove", "queries": ["b.com", "c.com/"], "match_type": "exact", "added": 0,
         "removed": 2},
    ]  # fmt: skip


@pytest.mark.usefixtures("cluster")
def test_what_is_excluded_is_listed_once_below_what_is_there() -> None:
    first = "# What must never come back: a URL or pattern in each line, as for cdxmill remove\n"
    run("a.com", "none.com", exclude=True)
    assert Path("C/exclude.txt").read_text() == f"{first}a.com\nnone.com\n"
    assert len(log()) == 1
    run("a.com", exclude=True)
    assert len(log()) == 1
    run("a.com", "*.b.com", exclude=True)
    assert Path("C/exclude.txt").read_text() == f"{first}a.com\nnone.com\n*.b.com\n"
    run("nothing.com", exclude=True)  # nothing goes, and it is excluded
    assert Path("C/exclude.txt").read_text().splitlines()[-1] == "nothing.com"
    assert [row["removed"] for row in log()] == [2, 1, 0]
    run("c.com")
    assert "c.com" not in Path("C/exclude.txt").read_text()


@pytest.mark.parametrize(
    ("query", "match_type", "pattern"),
    [
        ("a.org/x", None, "a.org/x"),
        ("a.org/x*", None, "a.org/x*"),
        ("*.a.org", None, "*.a.org"),
        ("a.org/x", "exact", "a.org/x"),
        ("a.org/x*", "exact", None),
        ("a.org/x", "prefix", "a.org/x*"),
        ("a.org", "host", "a.org/*"),
        ("a.org/", "host", "a.org/*"),
        ("a.org/*", "host", "a.org/*"),
        ("a.org", "domain", "*.a.org"),
        ("a.org/*", "domain", "*.a.org/"),
        ("a.org/a a.org/b", "range", None),
        ("a.org b.org", "range", None),
    ],
)
def test_the_pattern_of_an_exclusion_means_what_the_query_means(
    query: str, match_type: str | None, pattern: str | None
) -> None:
    if pattern is not None:
        assert module._pattern(query, match_type) == pattern
        return
    with pytest.raises(UsageError) as told:
        module._pattern(query, match_type)
    assert str(told.value) == (
        f"{query}: no pattern of exclude.txt means it with --match-type {match_type}; omit --exclude"
    )


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("query", "has_kept", "waits"),
    [("a.com", False, True), ("none.com", True, True), ("none.com", False, False)],
)
def test_replaced_shards_go_even_if_an_earlier_change_has_left_them(
    query: str, has_kept: bool, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have lines that were removed. With nothing removed and nothing kept, nobody is waited for."""
    if has_kept:
        run("b.com", keep_old=0)
        Path("new.cdxj").write_bytes(line("e") + b"\n")
        cdxmill.add("C", "new.cdxj", cdx=True, keep_old=3600, processes=1)
        assert Path("C/.kept.json").exists()
    waited: list[int] = []
    monkeypatch.setattr(module, "_wait", lambda change, asked: waited.append(asked.keep_old))
    run(query, keep_old=9)
    assert waited == ([9] if waits else [])
    assert not Path("C/.kept.json").exists()
    assert len(list(Path("C").glob("cdx-*.gz"))) == 2


@pytest.mark.usefixtures("cluster")
def test_a_dry_run_makes_nothing_of_a_cluster_of_another_tool() -> None:
    for name in ("cluster.json", "splits.txt", "splits.seq"):
        Path("C", name).unlink()
    before = {path.name for path in Path("C").iterdir()}
    with pytest.raises(UsageError, match=r"has no cluster\.json, so it cannot be changed"):
        run("a.com", dry_run=True)
    assert {path.name for path in Path("C").iterdir()} == before
    assert run("a.com").counts.removed == 2
    assert Path("C/cluster.json").exists()
