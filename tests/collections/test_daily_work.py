"""A collection from day to day: archives are added, sites removed, and readers that stay open see it."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill.errors import InputError, UsageError

from ..conftest import RunCdxmill
from ..material.cdx_files import cdxj, write_gzip
from ..material.clusters import write_raw_cluster


@pytest.fixture
def crawl(pywb_warcs: Path, tmp_path: Path) -> Path:
    """A cluster of one archive."""
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "crawl", shards=2, numlines=20, processes=1)
    return tmp_path / "crawl"


def lines_of(cluster: Path) -> list[bytes]:
    with cdxmill.Cluster(cluster) as opened:
        return [line for lines in opened.lines("*") for line in lines]


def rebuilt(archives: list[Path], cluster: Path, directory: Path) -> list[bytes]:
    splits = cluster / "splits.txt"
    cdxmill.build(archives, output=directory, splits=splits, numlines=20, processes=1, replace=True)
    return lines_of(directory)


def files_with(text: bytes, directory: Path) -> list[str]:
    """The files below a directory, unpacked, that have a text."""
    found = []
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if text in (gzip.decompress(data) if path.suffix == ".gz" else data):
                found.append(str(path.relative_to(directory)))
    return found


def test_the_lines_after_an_addition_are_those_of_a_rebuild(
    crawl: Path, pywb_warcs: Path, tmp_path: Path
) -> None:
    new = [pywb_warcs / "example.warc.gz", pywb_warcs / "dupes.warc.gz"]
    done = cdxmill.add(crawl, new, processes=1)
    assert done.added and not done.failures
    assert 1 <= done.shards <= 2, "a shard that is written again is one"
    wanted = rebuilt([pywb_warcs / "iana.warc.gz", *new], crawl, tmp_path / "rebuilt")
    assert lines_of(crawl) == wanted
    assert not cdxmill.verify(crawl).failures
    cdxmill.compact(crawl, processes=1, keep_old=0)
    shards = [one["name"] for one in json.loads((crawl / "cluster.json").read_bytes())["shards"]]
    for number, name in enumerate(shards):
        assert (crawl / name).read_bytes() == (tmp_path / f"rebuilt/cdx-0000{number}.gz").read_bytes()
    assert (crawl / "archives.tsv").read_bytes() == (tmp_path / "rebuilt/archives.tsv").read_bytes()


def test_what_is_there_already_changes_no_file(crawl: Path, pywb_warcs: Path) -> None:
    before = {path.name: path.read_bytes() for path in crawl.iterdir() if path.is_file()}
    done = cdxmill.add(crawl, pywb_warcs / "iana.warc.gz", processes=1)
    assert (done.added, done.shards) == (0, 0)
    assert {path.name: path.read_bytes() for path in crawl.iterdir() if path.is_file()} == before


def test_an_open_cluster_sees_a_change_with_its_next_query(crawl: Path, pywb_warcs: Path) -> None:
    with cdxmill.Cluster(crawl) as opened:
        begun = opened.lines("*")
        first = next(begun)
        before = opened.count("*")
        cdxmill.add(crawl, pywb_warcs / "example.warc.gz", processes=1)
        assert opened.count("example.com/*") > 0
        assert len(first) + sum(map(len, begun)) == before  # the old answer stays whole
        cdxmill.remove(crawl, "example.com/*", keep_old=0)
        assert opened.count("example.com/*") == 0


def test_removed_captures_are_in_no_file(crawl: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill) -> None:
    cdxmill.add(crawl, pywb_warcs / "example.warc.gz", processes=1)
    assert files_with(b"iana.org/about", crawl)
    shown = run_cdxmill("remove", crawl, "iana.org/about*", "--dry-run").stdout.splitlines()
    assert shown == [line for line in rebuilt_lines(crawl) if line.startswith(b"org,iana)/about")]
    assert files_with(b"iana.org/about", crawl)
    done = cdxmill.remove(crawl, "iana.org/about*", keep_old=0)
    assert done.removed == len(shown)
    assert files_with(b"iana.org/about", crawl) == ["changes.jsonl"]  # the query
    assert not cdxmill.verify(crawl).failures
    log = [json.loads(line) for line in (crawl / "changes.jsonl").read_text().splitlines()]
    assert [(one["command"], one["removed"]) for one in log] == [("add", 0), ("remove", len(shown))]


def rebuilt_lines(cluster: Path) -> list[bytes]:
    shards = [one["name"] for one in json.loads((cluster / "cluster.json").read_bytes())["shards"]]
    return [line for name in shards for line in gzip.decompress((cluster / name).read_bytes()).splitlines()]


@pytest.mark.parametrize(
    ("query", "gone"),
    [
        ("org.example/", ["example,org)/"]),
        ("example.org", ["org,example)/"]),
        ("example.org/*", ["org,example)/", "org,example)/a"]),
        ("*.example.org", ["org,example)/", "org,example)/a", "org,example,www2)/"]),
        ("example.org/a*", ["org,example)/a"]),
    ],
)
def test_exactly_what_was_meant_is_removed(query: str, gone: list[str], tmp_path: Path) -> None:
    keys = [
        "example,org)/",
        "org,example)/",
        "org,example)/a",
        "org,example,www2)/",
        "org,example2)/",
        "org,examples)/a",
    ]
    write_gzip(tmp_path / "a.cdxj.gz", sorted(map(cdxj, keys)))
    cdxmill.zipnum(tmp_path / "a.cdxj.gz", output=tmp_path / "c", numlines=2)
    cdxmill.remove(tmp_path / "c", query, keep_old=0)
    left = [line.split(b" ")[0].decode() for line in lines_of(tmp_path / "c")]
    assert left == sorted(set(keys) - set(gone))


@pytest.mark.parametrize(
    ("query", "match_type"),
    [
        ("*.iana.org/about*", None),
        ("*.iana.org/about", None),
        ("iana.org/about", "host"),
        ("iana.org/about*", "domain"),
        ("http://*.iana.org/about", None),
    ],
)
def test_more_than_was_meant_is_never_removed(query: str, match_type: str | None, crawl: Path) -> None:
    """A search for a host or a domain ignores the path, as pywb does."""
    before = lines_of(crawl)
    with pytest.raises(UsageError, match="not a URL that can be removed"):
        cdxmill.remove(crawl, query, match_type=match_type, keep_old=0)
    assert lines_of(crawl) == before
    assert cdxmill.remove(crawl, "*.iana.org/*", dry_run=True).removed > 0


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        ((), 2, "nothing to remove; give QUERY"),
        (("--from", "x"), 2, "'x'"),
        (("--archives", "/dev/null"), 2, "/dev/null: has no names of archives"),
        (("--keys", "urls"), 1, "urls: line 2 is not a key such as com,example)/page"),
        (("--keys", "lines"), 1, "lines: line 1 is not a key such as com,example)/page"),
        (("--exclude", "--match-type", "range", "iana.org/a iana.org/b"), 2, "no pattern of exclude.txt"),
        (("--exclude", "--match-type", "exact", "iana.org/a*"), 2, "no pattern of exclude.txt"),
    ],
)
def test_what_names_no_lines_removes_none(
    words: tuple[str, ...], status: int, reason: str, crawl: Path, run_cdxmill: RunCdxmill
) -> None:
    (crawl.parent / "urls").write_text("org,iana)/\nhttp://iana.org/about\n")
    (crawl.parent / "lines").write_bytes(lines_of(crawl)[0] + b"\n")
    before = {path.name: path.read_bytes() for path in crawl.glob("*.*")}
    done = run_cdxmill("remove", "-q", "--keep-old", "0", crawl, *words, cwd=crawl.parent)
    assert (done.returncode, done.stderr.count(b"\n")) == (status, 1), done.stderr
    assert reason.encode() in done.stderr
    assert {path.name: path.read_bytes() for path in crawl.glob("*.*")} == before


@pytest.mark.parametrize(
    ("query", "match_type", "pattern"),
    [
        ("iana.org/about", None, "iana.org/about"),
        ("iana.org/about", "exact", "iana.org/about"),
        ("iana.org/about", "prefix", "iana.org/about*"),
        ("iana.org/about*", "prefix", "iana.org/about**"),
        ("iana.org", "prefix", "iana.org*"),
        ("www.iana.org", "host", "www.iana.org/*"),
        ("iana.org/*", "host", "iana.org/*"),
        ("iana.org", "domain", "*.iana.org"),
        ("iana.org/*", "domain", "*.iana.org/"),
    ],
)
def test_what_is_excluded_is_what_is_removed(
    query: str, match_type: str | None, pattern: str, crawl: Path
) -> None:
    cdxmill.remove(crawl, query, match_type=match_type, exclude=True, keep_old=0)
    assert (crawl / "exclude.txt").read_text().splitlines()[1:] == [pattern]
    left = lines_of(crawl)
    cdxmill.remove(crawl, pattern, keep_old=0)
    assert lines_of(crawl) == left


def test_what_is_excluded_never_comes_back(crawl: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill) -> None:
    cdxmill.remove(crawl, "iana.org/about*", exclude=True, keep_old=0)
    left = lines_of(crawl)
    again = cdxmill.add(crawl, pywb_warcs / "iana.warc.gz")
    assert again.excluded and not again.added
    assert lines_of(crawl) == left
    built = run_cdxmill(
        "build", pywb_warcs / "iana.warc.gz", "-o", crawl, "--replace", "--numlines", "20", "-s", "2"
    )
    assert b"lines skipped, as exclude.txt says" in built.stderr
    assert lines_of(crawl) == left
    assert "duplicate line" not in built.stderr.decode().replace("0 duplicate lines", "")
    (crawl / "exclude.txt").write_text("*\n")
    refused = run_cdxmill("add", crawl, pywb_warcs / "example.warc.gz")
    assert refused.returncode == 1
    assert b"exclude.txt: line 1: " in refused.stderr
    assert lines_of(crawl) == left


def test_an_archive_under_another_name_is_noticed(crawl: Path, pywb_warcs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.warc.gz"
    shutil.copy(pywb_warcs / "iana.warc.gz", copy)
    done = cdxmill.add(crawl, copy)
    assert (done.added, done.shards) == (0, 0)
    assert [(one.path, "iana.warc.gz" in one.reason) for one in done.failures] == [("copy.warc.gz", True)]
    assert cdxmill.add(crawl, copy, again=True).added > 100


def test_another_archive_of_a_known_name_is_noticed(crawl: Path, pywb_warcs: Path, tmp_path: Path) -> None:
    other = tmp_path / "iana.warc.gz"
    shutil.copy(pywb_warcs / "example.warc.gz", other)
    before = lines_of(crawl)
    done = cdxmill.add(crawl, other)
    assert [one.path for one in done.failures] == [str(other)]
    assert "another archive of this name" in done.failures[0].reason
    assert lines_of(crawl) == before


def test_an_archive_that_was_moved_gets_its_new_place(crawl: Path, pywb_warcs: Path, tmp_path: Path) -> None:
    moved = tmp_path / "iana.warc.gz"
    shutil.copy(pywb_warcs / "iana.warc.gz", moved)
    assert cdxmill.add(crawl, moved).failures == []
    places = (crawl / "archives.tsv").read_text().split("\n")[0].split("\t")
    assert str(moved) in places


def test_lines_of_another_format_are_refused(crawl: Path, pywb_warcs: Path) -> None:
    before = lines_of(crawl)
    with pytest.raises(UsageError, match="same format"):
        cdxmill.add(crawl, pywb_warcs / "example.warc.gz", line_format="cdx11")
    assert lines_of(crawl) == before
    assert not (crawl / ".change").exists()


def test_the_archives_of_a_list_are_removed(crawl: Path, pywb_warcs: Path, tmp_path: Path) -> None:
    before = lines_of(crawl)
    cdxmill.add(crawl, pywb_warcs / "example.warc.gz")
    (tmp_path / "gone.txt").write_text("example.warc.gz\n")
    cdxmill.remove(crawl, archives=tmp_path / "gone.txt", keep_old=0)
    assert lines_of(crawl) == before
    assert b"example.warc.gz" not in (crawl / "archives.tsv").read_bytes()


def test_a_list_without_lines_adds_nothing(crawl: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    """A zero-byte .gz is a truncated file."""
    for name, status in (("a.cdxj", 0), ("a.cdxj.gz", 1)):
        (tmp_path / name).write_bytes(b"")
        done = run_cdxmill("add", crawl, "--cdx", tmp_path / name)
        assert (done.returncode, b"none of its lines" in done.stderr) == (status, bool(status))


def test_digits_behind_the_seconds_are_compared(tmp_path: Path) -> None:
    """Some tools write 17 digits."""
    times = [f"20200101000000{rest}" for rest in ("", "100", "200", "300")]
    write_gzip(tmp_path / "a.cdxj.gz", [cdxj("com,a)/", int(time)) for time in times])
    for last, left in (("20200101000000200", 1), ("20200101000000", 0), ("20200101", 0)):
        cdxmill.zipnum(tmp_path / "a.cdxj.gz", output=tmp_path / "c", replace=True)
        for query in ("a.com", ()):
            found = cdxmill.remove(tmp_path / "c", query, to=last, dry_run=True)
            assert found.removed == len(times) - left
    for first, gone in (("20200101000000200", 2), ("20200101000000", 4)):
        assert cdxmill.remove(tmp_path / "c", from_ts=first, dry_run=True).removed == gone


def test_clusters_are_merged(crawl: Path, pywb_warcs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    cdxmill.build([pywb_warcs / "example.warc.gz", pywb_warcs / "iana.warc.gz"], output=other, shards=3)
    cdxmill.remove(crawl, "iana.org/about*", keep_old=0)
    merged = cdxmill.merge([crawl, other], output=tmp_path / "merged")
    assert merged.failures == []
    assert lines_of(tmp_path / "merged") == sorted({*lines_of(crawl), *lines_of(other)})
    assert not cdxmill.verify(tmp_path / "merged").failures
    assert (tmp_path / "merged/archives.tsv").read_bytes() == (other / "archives.tsv").read_bytes()
    with pytest.raises(UsageError, match="is one of the clusters"):
        cdxmill.merge([crawl, other], output=crawl, replace=True)


def test_the_bounds_of_an_estimate_hold_after_changes(
    crawl: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    cdxmill.add(crawl, [pywb_warcs / "example.warc.gz", pywb_warcs / "dupes.warc.gz"])
    cdxmill.remove(crawl, "iana.org/d*", keep_old=0)
    told = run_cdxmill("lookup", crawl, "*.org", "--estimate").stdout.split()
    number = len([line for line in lines_of(crawl) if line.startswith(b"org,")])
    estimate, least, most = (int(word) for word in re.findall(rb"\d+", b" ".join(told))[:3])
    assert least <= number <= most and least <= estimate <= most


def test_split_points_and_copies_of_a_changed_cluster(crawl: Path, pywb_warcs: Path, tmp_path: Path) -> None:
    cdxmill.add(crawl, [pywb_warcs / "example.warc.gz", pywb_warcs / "dupes.warc.gz"])
    cdxmill.publish(crawl, tmp_path / "copy")
    assert lines_of(tmp_path / "copy") == lines_of(crawl)
    assert not cdxmill.verify(tmp_path / "copy").failures
    assert not (tmp_path / "copy/.kept.json").exists()
    cdxmill.add(tmp_path / "copy", pywb_warcs / "post-test.warc.gz")
    cdxmill.publish(tmp_path / "copy", crawl, replace=True)
    assert lines_of(crawl) == lines_of(tmp_path / "copy")
    assert not cdxmill.verify(crawl).failures
    points = tmp_path / "points.txt"
    cdxmill_split = cdxmill.sample(sorted(crawl.glob("cdx-*.gz")), shards=3, output=points)
    assert len(cdxmill_split.points) == 2


def test_a_cluster_of_another_tool_is_checked_and_then_changed(pywb_warcs: Path, tmp_path: Path) -> None:
    old = [cdxj(f"com,a)/{number:03d}") for number in range(100)]
    write_raw_cluster(tmp_path / "c", old, block_lines=30)
    shards = {path.name: path.read_bytes() for path in (tmp_path / "c").glob("cdx-*")}
    write_gzip(tmp_path / "new.cdxj.gz", [cdxj("com,a)/050x"), cdxj("com,b)/")])
    assert cdxmill.add(tmp_path / "c", tmp_path / "new.cdxj.gz", cdx=True).added == 2
    assert lines_of(tmp_path / "c") == sorted([*old, cdxj("com,a)/050x"), cdxj("com,b)/")])
    assert not cdxmill.verify(tmp_path / "c").failures
    assert {name: (tmp_path / "c" / name).read_bytes() for name in shards} == shards


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("name", "its shards are elsewhere, or have other names than cdx-00000.gz"),
        ("splits", "splits.txt has other split points than its shards"),
        ("key", "has a key of the next one"),
    ],
)
def test_a_cluster_whose_lines_would_be_lost_is_not_changed(
    change: str, reason: str, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The next command would look for them in another shard."""
    cluster = tmp_path / "c"
    lines = [cdxj(f"com,a)/{number:03d}") for number in range(20)]
    lines[10:10] = [cdxj("com,a)/009", rest='{"n": 1}'), cdxj("com,a)/009", rest='{"n": 2}')]
    write_gzip(tmp_path / "a.cdxj.gz", lines)
    (tmp_path / "points").write_bytes(lines[11] + b"\n" if change == "key" else b"com,a)/010\n")
    cdxmill.zipnum(tmp_path / "a.cdxj.gz", output=cluster, splits=tmp_path / "points", numlines=5)
    for name in ("cluster.json", "splits.seq", "splits.txt"):
        (cluster / name).unlink()
    if change == "splits":
        (cluster / "splits.txt").write_bytes(b"com,a)/012\n")
    elif change == "name":
        for path in [*cluster.glob("part-*"), cluster / "cluster.loc", cluster / "cluster.summary"]:
            path.unlink()
        index = cluster / "cluster.idx"
        index.write_bytes(index.read_bytes().replace(b"cdx-0000", b"cdx-0001"))
        for number in (0, 1):
            (cluster / f"cdx-0000{number}.gz").rename(cluster / f"cdx-0001{number}.gz")
    before = {path.name: path.read_bytes() for path in cluster.iterdir()}
    done = run_cdxmill("remove", "-q", "--keep-old", "0", cluster, "a.com/009")
    assert (done.returncode, reason in done.stderr.decode()) == (2, True), done.stderr
    assert {path.name: path.read_bytes() for path in cluster.iterdir() if path.name[0] != "."} == {
        name: data for name, data in before.items() if name[0] != "."
    }


def test_a_damaged_cluster_of_another_tool_is_not_changed(tmp_path: Path) -> None:
    write_raw_cluster(tmp_path / "c", [cdxj(f"com,a)/{number:03d}") for number in range(100)], 30)
    shard = tmp_path / "c/cdx-00000.gz"
    shard.write_bytes(shard.read_bytes()[:-9])
    before = {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()}
    write_gzip(tmp_path / "new.cdxj.gz", [cdxj("com,b)/")])
    with pytest.raises(InputError, match="has errors and no cluster"):
        cdxmill.add(tmp_path / "c", tmp_path / "new.cdxj.gz", cdx=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "c").iterdir()} == before


def test_shards_that_are_kept_for_readers_are_not_added_again(
    crawl: Path, pywb_warcs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    cdxmill.build(pywb_warcs / "example.warc.gz", output=other, shards=1)
    cdxmill.add(other, pywb_warcs / "dupes.warc.gz")
    gone = lines_of(other)[0]
    cdxmill.remove(other, json.loads(gone.split(b" ", 2)[2])["url"], keep_old=0)
    cdxmill.add(other, pywb_warcs / "post-test.warc.gz")
    assert (other / ".kept.json").exists()
    cdxmill.add(crawl, other, cdx=True)
    assert set(lines_of(other)) <= set(lines_of(crawl))
    assert gone not in lines_of(crawl)
