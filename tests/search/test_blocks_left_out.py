"""A block, or a shard, that cannot be read: it ends the answer, or is reported once and left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.errors import CorruptError, InputError
from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup, open_searched
from cdxmill.search.query import PreparedQuery

from ..material.clusters import write_raw_cluster

LINES = [b'com,a)/%02d 2020 {"url": "http://a.com/%02d"}' % (number, number) for number in range(12)]
LEFT = [*LINES[:3], *LINES[6:]]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Blocks of three lines. The second one is corrupt."""
    place = Path(write_raw_cluster(tmp_path / "C", LINES, 3))
    data = bytearray((place / "cdx-00000.gz").read_bytes())
    data[offset_of(place) + 20] ^= 0xFF
    (place / "cdx-00000.gz").write_bytes(data)
    return place


def offset_of(cluster: Path) -> int:
    return int((cluster / "cluster.idx").read_bytes().splitlines()[1].split(b"\t")[2])


QUERIES = [
    (Query(), LEFT, 1),
    (Query(sort="reverse"), LEFT[::-1], 1),
    (Query(sort="newest", limit=7), LEFT[::-1][:7], 1),
    (Query(limit=3), LINES[:3], 0),
    (Query(limit=4), LEFT[:4], 1),
    (Query(sort="reverse", limit=6), LINES[::-1][:6], 0),
    (Query(page=0, page_size=2), LINES[:3], 1),
    (Query(page=1, page_size=2), LINES[6:], 0),
    (Query(page=0, page_size=2, sort="reverse"), LINES[2::-1], 1),
    (Query(filter="url:0", sort="closest", closest="2021"), LEFT[:8], 1),
    (Query(match_type="range"), LEFT[:6], 1),
]


@pytest.mark.parametrize(("query", "wanted", "times"), QUERIES)
def test_what_needs_no_line_of_a_corrupt_block_is_whole_and_the_rest_is_told_once(
    query: Query, wanted: list[bytes], times: int, cluster: Path
) -> None:
    url = "http://a.com/00 http://a.com/09" if query.match_type == "range" else "*"
    told: list[InputError] = []
    assert sorted(lookup(cluster, url, query, told.append)) == sorted(wanted)
    shard = f"{cluster}/cdx-00000.gz"
    assert [(error.path, type(error), str(error).partition(": ")[0]) for error in told] == [
        (shard, CorruptError, f"{shard}@{offset_of(cluster)}")
    ] * times
    assert all(
        "; the lines of this block are missing; check it with cdxmill verify" in str(error) for error in told
    )
    if times:
        with pytest.raises(CorruptError, match=f"cdx-00000.gz@{offset_of(cluster)}"):
            list(lookup(cluster, url, query))
    else:
        assert list(lookup(cluster, url, query)) == wanted


def test_a_block_is_told_once_for_all_questions_and_counts(cluster: Path) -> None:
    told: list[InputError] = []
    prepared = PreparedQuery(Query(), told.append)
    keys = prepared.keys("*")
    with open_searched(cluster) as opened:
        assert prepared.count(opened, keys) == len(LEFT)
        assert len(told) == 1
        for _ in range(2):
            assert [line for lines in prepared.answer(opened, keys) for line in lines] == LEFT
        with pytest.raises(CorruptError):
            PreparedQuery(Query()).count(opened, keys)
    assert len(told) == 1


def test_a_shard_that_is_gone_is_told_once_for_all_its_blocks(cluster: Path) -> None:
    (cluster / "cdx-00000.gz").unlink()
    told: list[InputError] = []
    assert list(lookup(cluster, "*", Query(), told.append)) == []
    (error,) = told
    assert str(error).startswith(f"{cluster}/cdx-00000.gz: ")
    assert "; its lines are missing; check it with cdxmill verify" in str(error)
    with pytest.raises(InputError):
        list(lookup(cluster, "*"))


def test_whoever_is_told_may_end_the_answer(cluster: Path) -> None:
    def refuse(error: InputError) -> None:
        raise error

    found = []
    with pytest.raises(CorruptError, match="the lines of this block are missing"):
        for line in lookup(cluster, "*", Query(), refuse):
            found.append(line)  # noqa: PERF402 - what came before the error
    assert set(found) <= set(LINES[:3])


@pytest.mark.parametrize("has_skip", [True, False])
def test_a_line_that_cannot_be_parsed_is_told_and_left_out(has_skip: bool, tmp_path: Path) -> None:
    lines = [LINES[0], b"com,a)/01 2020 {bad", b'com,a)/02 2020 {"url": ' + b"[" * 9999, LINES[3]]
    place = write_raw_cluster(tmp_path / "C", lines)
    told: list[InputError] = []
    answer = lookup(place, "*", Query(filter="url:a.com"), told.append if has_skip else None)
    if not has_skip:
        with pytest.raises(InputError, match=r"^\S+/C: "):
            list(answer)
        return
    assert list(answer) == [LINES[0], LINES[3]]
    assert [error.path for error in told] == [place, place]
    assert told[1].reason.startswith("invalid JSON in a line (too many nested values): ")
    assert len(told[1].reason) < 200
