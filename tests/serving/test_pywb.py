"""pywb 2.10 serves a cluster: its CDX API and its replayed pages agree with the files.

The expected answers are computed from the keys of the cluster's decompressed lines. warcio reads the
expected pages from the byte ranges of the lines.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import pytest
from warcio.archiveiterator import ArchiveIterator

if TYPE_CHECKING:
    from tests.conftest import Cluster
    from tests.serving.conftest import Answer, Wayback

COLLECTIONS = ["web", "index-moved", "shards-moved"]


class Query(NamedTuple):
    """A question to the CDX API, and the url keys of its answer."""

    url: str
    match_type: str
    wants: Callable[[bytes], bool]
    start: bytes  # the smallest key that may match
    end: bytes  # a key greater than all that match


def exact(url: str, key: bytes) -> Query:
    return Query(url, "exact", lambda found: found == key, key, key + b"!")


def prefix(url: str, key: bytes) -> Query:
    return Query(url, "prefix", lambda found: found.startswith(key), key, key[:-1] + bytes([key[-1] + 1]))


def host(url: str, key: bytes) -> Query:
    return Query(url, "host", lambda found: found.startswith(key + b")/"), key + b")/", key + b"*")


def domain(url: str, key: bytes) -> Query:
    return Query(
        url, "domain", lambda found: found.startswith((key + b")/", key + b",")), key + b")/", key + b"-"
    )


QUERIES = [
    exact("http://www.iana.org/", b"org,iana)/"),
    exact("http://example.com/?example=1", b"com,example)/?example=1"),
    exact("http://www.archive.org/images/star.png", b"org,archive)/images/star.png"),
    prefix("http://www.iana.org/domains", b"org,iana)/domains"),
    prefix("http://www.iana.org/_css/2013.1/fonts/", b"org,iana)/_css/2013.1/fonts/"),
    host("http://www.archive.org/", b"org,archive"),
    host("bits.wikimedia.org", b"org,wikimedia,bits"),
    domain("archive.org", b"org,archive"),
    domain("wikimedia.org", b"org,wikimedia"),
    domain("com", b"com"),
]
PAGED = [query for query in QUERIES if query.match_type != "exact"]
every_query = pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.match_type}-{query.url}")
every_paged_query = pytest.mark.parametrize(
    "query", PAGED, ids=lambda query: f"{query.match_type}-{query.url}"
)


def expected(cluster: Cluster, query: Query) -> list[bytes]:
    wanted = [line for line in cluster.lines() if query.wants(line.split(b" ", 1)[0])]
    assert wanted, "a query that nothing answers shows nothing"
    return wanted


def text(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def ask(wayback: Wayback, query: Query, collection: str = "web", **params: object) -> bytes:
    """An answer. Unless a page size is given, the page has room for the whole cluster."""
    question = {"url": query.url, "matchType": query.match_type, "pageSize": 1000, **params}
    return wayback.cdx(collection, **question)


def fields(line: bytes) -> dict[str, str]:
    """The JSON of a line with its timestamp."""
    _, timestamp, block = line.split(b" ", 2)
    return {**json.loads(block), "timestamp": timestamp.decode()}


def test_the_cluster_has_all_archives_in_many_blocks_and_4_shards(cluster: Cluster) -> None:
    assert cluster.status == 0, cluster.stderr
    rows = cluster.index_rows()
    assert len({shard for _, shard, *_ in rows}) == 4
    assert len(rows) > 40


@pytest.mark.parametrize("collection", COLLECTIONS)
@every_query
def test_an_answer_is_exactly_the_cluster_s_lines(
    wayback: Wayback, cluster: Cluster, query: Query, collection: str
) -> None:
    assert ask(wayback, query, collection) == text(expected(cluster, query))


def test_every_line_is_found_by_its_own_url(wayback: Wayback, cluster: Cluster) -> None:
    for key, found in groupby(cluster.lines(), key=lambda line: line.split(b" ", 1)[0]):
        lines = list(found)
        query = exact(fields(lines[0])["url"], key)
        assert ask(wayback, query) == text(lines)


def test_an_absent_url_has_an_empty_answer(wayback: Wayback) -> None:
    assert wayback.cdx(url="http://www.iana.org/never-was-there") == b""
    assert wayback.cdx(url="nowhere.invalid", matchType="domain") == b""


def blocks_of(cluster: Cluster, query: Query) -> int:
    """The number of blocks that may hold the lines of the query: from the last one that starts before them."""
    starts = [row[0] for row in cluster.index_rows()]
    before = sum(start < query.start for start in starts)
    until = sum(start < query.end for start in starts)
    return until - max(before - 1, 0)


@pytest.mark.parametrize("page_size", [1, 2, 7])
@every_paged_query
def test_the_number_of_pages_follows_from_the_blocks_and_the_pages_add_up_to_the_answer(
    wayback: Wayback, cluster: Cluster, query: Query, page_size: int
) -> None:
    blocks = blocks_of(cluster, query)
    count = json.loads(ask(wayback, query, showNumPages="true", pageSize=page_size))
    assert count == {"pages": -(-blocks // page_size), "pageSize": page_size, "blocks": blocks}
    pages = [ask(wayback, query, page=page, pageSize=page_size) for page in range(count["pages"])]
    assert b"".join(pages) == text(expected(cluster, query))
    assert max(page.count(b"\n") for page in pages) <= 10 * page_size


def test_without_page_the_answer_is_the_first_page_of_10_blocks(wayback: Wayback, cluster: Cluster) -> None:
    query = domain("archive.org", b"org,archive")
    assert blocks_of(cluster, query) > 10
    assert wayback.cdx(url="archive.org", matchType="domain") == ask(wayback, query, pageSize=10)


def test_the_paged_index_is_the_rows_of_cluster_idx(wayback: Wayback, cluster: Cluster) -> None:
    query = domain("archive.org", b"org,archive")
    rows = (cluster.directory / "cluster.idx").read_bytes().splitlines()
    inside = [row for row in rows if query.start <= row < query.end]
    shown = ask(wayback, query, showPagedIndex="true", pageSize=1000, output="text").splitlines()
    assert shown[1:] == inside
    assert shown[0] == rows[rows.index(inside[0]) - 1]


@pytest.mark.parametrize("limit", [1, 3, 11])
def test_limit_takes_the_first_lines(wayback: Wayback, cluster: Cluster, limit: int) -> None:
    query = domain("archive.org", b"org,archive")
    assert ask(wayback, query, limit=limit) == text(expected(cluster, query)[:limit])


def test_sort_reverse_reverses_the_lines(wayback: Wayback, cluster: Cluster) -> None:
    query = host("www.iana.org", b"org,iana")
    assert ask(wayback, query, sort="reverse") == text(reversed(expected(cluster, query)))


@pytest.mark.parametrize(
    ("filters", "keeps"),
    [
        (["=status:404"], lambda line: line.get("status") == "404"),
        (["!=status:200"], lambda line: line.get("status", "") != "200"),
        (["mime:image/"], lambda line: "image/" in line.get("mime", "")),
        (
            ["~url:.*\\.(png|gif)$", "=status:200"],
            lambda line: line["url"].endswith(("png", "gif")) and line["status"] == "200",
        ),
    ],
    ids=["exact", "not-exact", "contains", "two-at-once"],
)
def test_filters_see_the_fields_of_the_lines(
    wayback: Wayback, cluster: Cluster, filters: list[str], keeps: Callable[[dict[str, str]], bool]
) -> None:
    query = domain("archive.org", b"org,archive")
    kept = [line for line in expected(cluster, query) if keeps(fields(line))]
    assert kept
    assert ask(wayback, query, filter=filters) == text(kept)


def test_from_and_to_bound_the_timestamps(wayback: Wayback, cluster: Cluster) -> None:
    query = host("www.iana.org", b"org,iana")
    lines = expected(cluster, query)
    inside = [line for line in lines if "20140126200700" <= fields(line)["timestamp"] <= "20140126200899"]
    assert 0 < len(inside) < len(lines)
    assert ask(wayback, query, **{"from": "201401262007", "to": "201401262008"}) == text(inside)


def archived_payload(archive: Path, line: dict[str, str]) -> bytes:
    """The payload that warcio reads from the line's range, with transfer and content coding undone."""
    with archive.open("rb") as file:
        file.seek(int(line["offset"]))
        record = next(ArchiveIterator(io.BytesIO(file.read(int(line["length"])))))
    payload: bytes = record.content_stream().read()
    return payload


def replayed_payload(answer: Answer) -> bytes:
    coding = answer.headers.get("Content-Encoding", "identity").lower()
    if coding == "gzip":
        return gzip.decompress(answer.body)
    return zlib.decompress(answer.body) if coding == "deflate" else answer.body


def replay(wayback: Wayback, line: dict[str, str]) -> Answer:
    """The page of a capture. pywb redirects from http://host to http://host/."""
    page = f"/web/{line['timestamp']}id_/"
    answer = wayback.get(page + line["url"])
    if answer.status != 307:
        return answer
    to = urlsplit(answer.headers["Location"])._replace(scheme="", netloc="").geturl()
    assert to == page + urlsplit(line["url"])._replace(path="/").geturl()
    return wayback.get(to)


def captures(cluster: Cluster) -> Iterator[list[dict[str, str]]]:
    """The lines with status 200 that are no revisits, those with the same key and timestamp together."""
    for _, lines in groupby(cluster.lines(), key=lambda line: line.split(b" ", 2)[:2]):
        same = [fields(line) for line in lines]
        if all(line.get("status") == "200" and line.get("mime") != "warc/revisit" for line in same):
            yield same


def test_every_page_replays_as_stored_in_its_archive(
    wayback: Wayback, cluster: Cluster, served_archives: list[Path]
) -> None:
    archives = {path.name: path for path in served_archives}
    seen: set[str] = set()
    for same in captures(cluster):
        answer = replay(wayback, same[0])
        assert answer.status == 200, (same, answer)
        archived = [archived_payload(archives[line["filename"]], line) for line in same]
        assert replayed_payload(answer) in archived, same
        seen.update(line["filename"] for line in same)
    assert seen >= {"iana.warc.gz", "example.arc.gz", "example.arc", "example-extra.warc"}
    assert seen >= {path.name for path in served_archives[-3:]}


def test_a_revisit_replays_the_original_s_payload(
    wayback: Wayback, cluster: Cluster, pywb_warcs: Path
) -> None:
    lines = [fields(line) for line in cluster.lines() if line.startswith(b"org,iana)/ ")]
    original = next(line for line in lines if line["filename"] == "iana.warc.gz")
    revisit = next(line for line in lines if line.get("mime") == "warc/revisit")
    answer = replay(wayback, revisit)
    assert (answer.status, answer.headers["Memento-Datetime"]) == (200, "Mon, 27 Jan 2014 17:12:38 GMT")
    assert replayed_payload(answer) == archived_payload(pywb_warcs / "iana.warc.gz", original)


def test_a_redirect_replays_as_a_redirect(wayback: Wayback, cluster: Cluster) -> None:
    key = b"org,iana)/domains/example "
    line = next(fields(line) for line in cluster.lines() if line.startswith(key))
    answer = replay(wayback, line)
    assert (answer.status, line["status"]) == (302, "302")
    assert answer.headers["Location"].endswith("/domains/reserved")
