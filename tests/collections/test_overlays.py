"""Lines that were added as an overlay are read with those of the shards, by everything that reads a cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cdxmill
from cdxmill.commands.collections import add_clusters, add_lines
from cdxmill.errors import InputError

from ..conftest import RunCdxmill
from ..material.cdx_server import cdx_server
from ..storage.range_server import serving


def line(key: str, number: int) -> str:
    fields = {"url": "http://x/", "digest": f"D{number}", "length": "7", "offset": str(number)}
    return f"{key} 2020 {json.dumps({**fields, 'filename': f'{key[-3:]}.warc.gz'})}"


OLD = [line(f"com,example)/{number:03d}", number) for number in range(200)]
NEW = [line(f"com,example)/{number:03d}", 1000 + number) for number in range(0, 200, 20)]
NEW += [line(f"org,example)/{number:03d}", number) for number in range(3)]
ALL = sorted(OLD + NEW)
Add = Callable[[list[str]], cdxmill.ChangeResult]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster of three shards with two overlays, which have a line in common."""
    monkeypatch.chdir(tmp_path)
    Path("old.cdxj").write_text("".join(f"{one}\n" for one in OLD))
    Path("points").write_text("com,example)/070\ncom,example)/140\n")
    cdxmill.zipnum("old.cdxj", output="C", splits="points", numlines=9, processes=1)
    for name, lines in (("a", NEW[:6]), ("b", NEW[5:])):
        Path(name).with_suffix(".cdxj").write_text("".join(f"{one}\n" for one in lines))
        cdxmill.add("C", f"{name}.cdxj", cdx=True, mode="overlay", processes=1)
    return tmp_path / "C"


def overlays(cluster: Path) -> list[str]:
    found = json.loads((cluster / "cluster.json").read_bytes()).get("overlays", [])
    return [one["name"] for one in found]


def printed(run: RunCdxmill, *words: str | Path) -> list[str]:
    done = run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_lookup_gives_the_answer_of_one_cluster(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    assert len(overlays(cluster)) == 2
    assert printed(run_cdxmill, "lookup", cluster, "*") == ALL
    assert printed(run_cdxmill, "lookup", cluster, "*", "--count") == [str(len(ALL))]
    assert printed(run_cdxmill, "lookup", cluster, "*", "--sort", "reverse", "--limit", "5") == ALL[:-6:-1]
    assert printed(run_cdxmill, "lookup", cluster, "example.com/100") == [OLD[100], NEW[5]]
    assert printed(run_cdxmill, "lookup", cluster, "example.org/*") == NEW[10:]
    urls = "\n".join(["example.org/001", "example.com/003", "example.com/000"])
    Path("urls").write_text(urls)
    assert len(printed(run_cdxmill, "lookup", cluster, "-i", "urls")) == 4


def test_export_report_and_the_cdx_server_read_them(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    assert printed(run_cdxmill, "export", cluster, "--to", "cdxj", "-q", "-o", "-") == ALL
    run_cdxmill("report", "-q", "--json", "r.json", cluster)
    totals = json.loads(Path("r.json").read_bytes())["totals"]
    assert totals["captures"] == len(ALL)
    with cdx_server(f"web={cluster}") as server:
        assert server.ask("/web/cdx", url="*").text.splitlines() == ALL
        assert server.ask("/web/cdx", url="example.com/100").text.splitlines() == [OLD[100], NEW[5]]


def test_pages_have_all_lines_once(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    (pages,) = printed(run_cdxmill, "lookup", cluster, "*", "--show-num-pages", "--page-size", "4")
    found = [
        text
        for page in range(json.loads(pages)["pages"])
        for text in printed(run_cdxmill, "lookup", cluster, "*", "--page-size", "4", "--page", str(page))
    ]
    assert found == ALL
    estimated = json.loads("".join(printed(run_cdxmill, "lookup", cluster, "*", "--estimate")))
    assert estimated["least"] <= len(ALL) <= estimated["most"]


def test_overlays_with_many_lines_are_to_be_compacted(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    """A quarter of the lines in the shards is the limit."""
    advised = []
    for first, number in ((0, 50 - len(NEW)), (50, 1)):
        lines = [line(f"com,example)/{page:03d}", 5000 + page) for page in range(first, first + number)]
        Path("more.cdxj").write_text("".join(f"{one}\n" for one in lines))
        done = run_cdxmill("add", "-q", "C", "--cdx", "more.cdxj", "--mode", "overlay")
        assert done.returncode == 0
        advised.append(done.stderr)
    assert advised == [
        b"",
        b"note: 4 overlays with 51 lines, and 200 in shards; run cdxmill compact C\n",
    ]


def test_over_http_overlays_are_read_too(cluster: Path) -> None:
    with serving() as server:
        for path in cluster.iterdir():
            if path.is_file():
                server.add(f"/C/{path.name}", path.read_bytes())
        assert len(list(cdxmill.lookup(f"{server.url}/C", "*"))) == len(ALL)
        assert len(list(cdxmill.lookup(f"{server.url}/C", "example.org/002"))) == 1


def test_copies_merges_and_trees_have_the_lines_of_overlays(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    printed(run_cdxmill, "publish", "-q", cluster, "copy")
    assert printed(run_cdxmill, "lookup", "copy", "*") == ALL
    assert not cdxmill.verify("copy", against=["old.cdxj", "a.cdxj", "b.cdxj"]).failures
    assert cdxmill.verify("copy", against=["old.cdxj", "a.cdxj"]).failures
    cdxmill.merge("C", output="M", numlines=9, processes=1)
    assert printed(run_cdxmill, "lookup", "M", "*") == ALL
    printed(run_cdxmill, "prefix-index", "build", "-q", "-o", "T.tree", "C")
    assert len(printed(run_cdxmill, "lookup", "T.tree", "*")) == len(ALL)
    done = run_cdxmill("split-points", "--from-cluster", "C", "-s", "2", "-o", "s.txt")
    assert (done.returncode, b"has overlays" in done.stderr) == (2, True)


def test_compact_gives_the_bytes_of_a_rebuild(cluster: Path) -> None:
    cdxmill.compact(cluster, keep_old=0, processes=1)
    assert overlays(cluster) == []
    cdxmill.zipnum(["old.cdxj", "a.cdxj", "b.cdxj"], output="R", splits="points", numlines=9, processes=1)
    for number, one in enumerate(json.loads((cluster / "cluster.json").read_bytes())["shards"]):
        assert (cluster / one["name"]).read_bytes() == Path(f"R/cdx-0000{number}.gz").read_bytes()
    cdxmill.compact(cluster, keep_old=0, processes=1)  # deletes what was kept
    assert not list(cluster.glob("overlay-*"))


def test_an_open_cluster_sees_an_overlay_with_its_next_query(cluster: Path) -> None:
    Path("c.cdxj").write_text(line("net,example)/", 7) + "\n")
    with cdxmill.Cluster(cluster) as opened:
        begun = opened.lines("*")
        some = len(next(begun))
        cdxmill.add(cluster, "c.cdxj", cdx=True, mode="overlay", processes=1)
        assert opened.count("*") == len(ALL) + 1
        assert opened.count("example.net/") == 1
        assert some + sum(map(len, begun)) == len(ALL)


@pytest.mark.parametrize("ending", [".gz", ".idx", ".keys"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_damaged_overlay_is_never_skipped(ending: str, is_gone: bool, cluster: Path) -> None:
    path = cluster / overlays(cluster)[0].replace(".gz", ending)
    data = path.read_bytes()
    path.unlink()
    if not is_gone:
        path.write_bytes(data[: len(data) // 2] + b"\0\0\0\0" + data[len(data) // 2 + 4 :])
    with pytest.raises(InputError):
        list(cdxmill.lookup(cluster, "example.com/100"))
    assert cdxmill.verify(cluster).failures


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (b"", "is corrupt"),
        (b"com,example)/000 2020\toverlay-00001-1.gz\t0\tx\n", "is corrupt"),
        (b"com,example)/000 2020\toverlay-00001-1.gz\t0\t20\n", "does not have the blocks of"),
        (b"com,example)/000 2020\toverlay-00001-1.gz\t0\t20\n" * 2, "does not have the blocks of"),
    ],
)
def test_an_overlay_with_another_index_gives_no_answer(rows: bytes, reason: str, cluster: Path) -> None:
    (cluster / overlays(cluster)[0].replace(".gz", ".idx")).write_bytes(rows)
    with pytest.raises(InputError, match=reason):
        list(cdxmill.lookup(cluster, "example.com/*"))


def test_an_export_skips_a_damaged_block(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    """One of a shard and one of an overlay are reported, as those of a cluster without overlays are."""
    overlay = cluster / overlays(cluster)[1]
    for path in (cluster / "cdx-00001.gz", overlay):
        data = path.read_bytes()
        path.write_bytes(data[:99] + bytes(4) + data[103:])
    done = run_cdxmill("export", "-q", "--to", "cdxj", "-o", "all.cdxj", cluster)
    assert done.returncode == 1
    first, second = sorted(done.stderr.decode().splitlines())
    for text, name in ((first, "cdx-00001.gz"), (second, overlay.name)):
        assert f"{cluster}/{name}@0: " in text and "the lines of this block are missing" in text
    missing = {*OLD[70:79], *NEW[6:]}
    assert Path("all.cdxj").read_text().splitlines() == [one for one in ALL if one not in missing]


def test_without_the_list_of_overlays_there_is_no_answer(cluster: Path) -> None:
    (cluster / "cluster.json").unlink()
    with pytest.raises(InputError, match=r"has overlays, and no cluster.json"):
        list(cdxmill.lookup(cluster, "example.com/100"))


def test_a_large_cluster_gets_overlays_and_is_compacted_when_they_are_many(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, run_cdxmill: RunCdxmill
) -> None:
    monkeypatch.setattr(add_lines, "LARGE", 1)
    for number in range(3, 9):
        lines = [line(f"com,example)/{page:03d}", 9000 + 300 * number + page) for page in range(0, 200, 9)]
        Path("more.cdxj").write_text("".join(f"{one}\n" for one in lines))
        assert cdxmill.add(cluster, "more.cdxj", cdx=True, again=True, processes=1).added == len(lines)
        assert len(overlays(cluster)) == (number if number < 8 else 0)
    one = [line("com,example)/100", 77)]
    Path("more.cdxj").write_text("".join(f"{text}\n" for text in one))
    cdxmill.add(cluster, "more.cdxj", cdx=True, again=True, processes=1)
    assert overlays(cluster) == []
    assert len(list(cdxmill.lookup(cluster, "*"))) == len(ALL) + 6 * 23 + 1


@pytest.mark.parametrize(("lines", "is_overlay"), [(50, True), (51, False)])
def test_few_lines_of_another_cluster_become_an_overlay_of_a_large_one(
    lines: int, is_overlay: bool, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of many are copied to the shards."""
    for module in (add_lines, add_clusters):
        monkeypatch.setattr(module, "LARGE", len(OLD))
    cdxmill.zipnum("old.cdxj", output="D", shards=1, numlines=9, processes=1)
    text = "".join(f"{line(f'com,example)/{4 * number:03d}', 9000 + number)}\n" for number in range(lines))
    Path("other.cdxj").write_text(text)
    cdxmill.zipnum("other.cdxj", output="other", shards=1, numlines=9, processes=1)
    assert cdxmill.add("D", "other", cdx=True, processes=1).added == lines
    assert bool(overlays(Path("D"))) == is_overlay
    assert len(list(cdxmill.lookup("D", "*"))) == len(OLD) + lines


def test_a_replaced_cluster_leaves_no_overlay(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    printed(run_cdxmill, "zipnum", "-q", "--replace", "-s", "1", "-o", cluster, "old.cdxj")
    assert not list(cluster.glob("overlay-*"))
    assert printed(run_cdxmill, "lookup", cluster, "*") == OLD


def test_a_change_that_was_stopped_leaves_no_overlay(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    """Of an overlay that no cluster.json lists, the next command deletes all files."""
    before = {path.name for path in cluster.iterdir()}
    (cluster / ".change").mkdir()
    (cluster / ".change/plan.json").write_text('{"change": 3}')
    for ending in (".gz", ".idx", ".keys"):
        old = cluster / f"overlay-00001-1{ending}"
        shutil.copy(old, cluster / f"overlay-00003-3{ending}")
    assert cdxmill.add(cluster, "a.cdxj", cdx=True, processes=1).added == 0
    assert {path.name for path in cluster.iterdir()} == before


def test_a_cluster_with_overlays_is_added_to_another_one(cluster: Path) -> None:
    """All its lines are counted, those of overlays, too, and its small blocks become whole ones."""
    Path("other.cdxj").write_text(
        "".join(f"{line(f'net,example)/{number:03d}', number)}\n" for number in range(9))
    )
    cdxmill.zipnum("other.cdxj", output="other", shards=1, numlines=9, processes=1)
    done = cdxmill.add("other", "C", cdx=True, processes=1)
    assert (done.added, done.present) == (len(ALL), 0)
    manifest = json.loads(Path("other/cluster.json").read_bytes())
    assert manifest["lines"] == len(ALL) + 9
    again = cdxmill.add("other", "C", cdx=True, processes=1)
    assert (again.added, again.present) == (0, len(ALL))


def test_an_overlay_with_a_row_too_many_gives_no_answer(cluster: Path) -> None:
    """The last row is right."""
    index = cluster / overlays(cluster)[0].replace(".gz", ".idx")
    index.write_bytes(index.read_bytes() * 2)
    with pytest.raises(InputError, match="does not have the blocks of"):
        list(cdxmill.lookup(cluster, "example.com/*"))
