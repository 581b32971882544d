"""Lines of overlays are in every answer, in their places, and only overlays that may have some are read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster.overlays import Overlay, overlays_of
from cdxmill.errors import AbsentError, CorruptError, InputError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup, open_searched
from cdxmill.search.query import Estimate, PreparedQuery, count_blocks, estimate
from cdxmill.storage.location import Location, locate

from ..material.cdx_files import write_plain

OLD = [b'com,a)/%03d 2020 {"old": ""}' % number for number in range(40)]
FIRST = [b'com,a)/%03d 2021 {"first": ""}' % number for number in range(0, 40, 5)]
SECOND = [FIRST[1], b'com,a,b)/ 2020 {"second": ""}', b'org,z)/ 2020 {"second": ""}']
ALL = sorted({*OLD, *FIRST, *SECOND})


@pytest.fixture(scope="module")
def overlaid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("overlaid")
    cdxmill.zipnum(
        write_plain(place / "old.cdxj", OLD), output=place / "C", shards=1, numlines=4, processes=1
    )
    for name, lines in (("first", FIRST), ("second", SECOND)):
        new = write_plain(place / f"{name}.cdxj", lines)
        cdxmill.add(place / "C", new, cdx=True, mode="overlay", processes=1)
    return place / "C"


ASKED = {
    "*": ALL,
    "a.com/*": [line for line in ALL if line.startswith(b"com,a)/")],
    "*.a.com": [line for line in ALL if line.startswith(b"com,a")],
    "http://a.com/005": [OLD[5], FIRST[1]],
    "http://a.com/006": [OLD[6]],
    "http://b.a.com/": SECOND[1:2],
    "z.org": SECOND[2:],
    "http://absent.org/": [],
}


@pytest.mark.parametrize("url", ASKED)
def test_an_answer_has_the_lines_of_all_overlays(url: str, overlaid: Path) -> None:
    wanted = ASKED[url]
    assert list(lookup(overlaid, url)) == wanted
    assert list(lookup(overlaid, url, Query(sort="reverse"))) == wanted[::-1]
    assert list(lookup(overlaid, url, Query(limit=3))) == wanted[:3]
    assert list(lookup(overlaid, url, Query(limit=3, sort="newest"))) == wanted[::-1][:3]
    prepared = PreparedQuery(Query())
    keys = prepared.keys(url)
    with open_searched(overlaid) as opened:
        assert prepared.count(opened, keys) == len(wanted)
        blocks = sum(count_blocks(one, keys.low, keys.high) for one in opened.indexes(keys.low, keys.high))
        found = estimate(opened, prepared, keys)
    assert found.least <= len(wanted) <= (found.most or 99)
    pages = [list(lookup(overlaid, url, Query(page=page, page_size=3))) for page in range(-(-blocks // 3))]
    assert [line for lines in pages for line in lines] == wanted
    for page, lines in enumerate(pages):
        asked = Query(page=page, page_size=3, sort="reverse")
        assert list(lookup(overlaid, url, asked)) == lines[::-1]


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (b"", b"\xff", [1, 2]),
        (b"com,a)/005", b"com,a)/005!", [1]),
        (b"com,a)/010", b"com,a)/010!", [1]),
        (b"com,a)/011", b"com,a)/011!", []),
        (b"org,z)/", b"org,z)0", [2]),
        (b"com,a,b)/", b"com,a,b)/!", [2]),
    ],
)
def test_overlays_are_read_that_may_have_the_lines(
    low: bytes, high: bytes, wanted: list[int], overlaid: Path
) -> None:
    with open_searched(overlaid) as opened:
        found = opened.overlays(low, high)
        assert [one.entry.name for one in found] == [f"overlay-0000{n}-{n}.gz" for n in wanted]
        assert len(opened.own_indexes(low, high)) == len(opened.sources(low, high)) == 1 + len(wanted)
        assert opened.is_merged(low, high) is bool(wanted)


def test_a_cluster_without_overlays_asks_no_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Overlay, "may_have", None)
    path = write_plain(tmp_path / "old.cdxj", OLD)
    cdxmill.zipnum(path, output=tmp_path / "C", shards=1, numlines=4, processes=1)
    with open_searched(tmp_path / "C") as opened:
        assert opened.overlays(b"", b"\xff") == opened.overlays(b"com,a)/", b"com,a)0") == []


def test_an_estimate_counts_the_blocks_of_overlays(overlaid: Path) -> None:
    prepared = PreparedQuery(Query())
    with open_searched(overlaid) as opened:
        assert estimate(opened, prepared, KeyRange(b"", b"\xff")) == (
            40 - 2 + 8 + 2,
            10,
            60 + 8 + 2,
            10 + 1 + 1,
        )
        assert isinstance(estimate(opened, prepared, KeyRange(b"org", b"orh")), Estimate)


def test_each_overlay_has_a_reader_of_its_own(overlaid: Path) -> None:
    """It holds the block that was read last."""
    with open_searched(overlaid) as opened:
        first, second = ([blocks for _, blocks in opened.sources(b"", b"\xff")] for _ in range(2))
        assert len(set(map(id, first))) == 3
        assert list(map(id, first)) == list(map(id, second))
        assert first[0] is opened.blocks


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        (".keys", lambda data: data[:-1], ""),
        (".keys", lambda data: b"", ""),
        (".idx", lambda data: b"", "is corrupt"),
        (".idx", lambda data: data + b"x\n", "is corrupt"),
        (".idx", lambda data: data + data, "does not have the blocks of overlay-00001-1.gz"),
        (
            ".idx",
            lambda data: data.replace(b"\t0\t", b"\t1\t"),
            "does not have the blocks of overlay-00001-1.gz",
        ),
    ],
)
def test_a_damaged_index_or_filter_of_an_overlay_is_an_error(
    name: str, change: Callable[[bytes], bytes], reason: str, overlaid: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copytree(overlaid, tmp_path / "C")) / f"overlay-00001-1{name}"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CorruptError) as found:
        list(lookup(tmp_path / "C", "http://a.com/005"))
    assert str(found.value).startswith(f"{path}: {reason}")
    assert found.value.hint == "check the cluster with cdxmill verify"
    path.unlink()
    with pytest.raises(AbsentError):
        list(lookup(tmp_path / "C", "http://a.com/005"))


def test_overlays_need_the_manifest_that_lists_them(overlaid: Path, tmp_path: Path) -> None:
    cluster = Path(shutil.copytree(overlaid, tmp_path / "C"))
    (cluster / "cluster.json").unlink()
    with pytest.raises(InputError, match=r"/C: has overlays, and no cluster\.json that lists them"):
        list(lookup(cluster, "*"))
    for path in cluster.glob("overlay-*.gz"):
        path.unlink()
        (cluster / path.with_suffix(".keys").name).unlink()
        (cluster / path.with_suffix(".idx").name).unlink()
    assert list(lookup(cluster, "*")) == OLD


def test_a_cluster_at_a_url_without_a_manifest_is_not_listed(
    overlaid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Web servers have no listings, and those of buckets are slow."""
    with pytest.raises(InputError, match="has overlays"):
        overlays_of(locate(overlaid), None)
    assert overlays_of(locate(overlaid.parent), None) == []
    monkeypatch.setattr(Location, "entries", None)
    for url in ("https://h/C", "s3://bucket/C"):
        assert overlays_of(locate(url), None) == []
