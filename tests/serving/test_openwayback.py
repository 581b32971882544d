"""OpenWayback 2.4 reads and replays a cluster of CDX lines with 11 fields, by its own classes.

Expected answers are from the decompressed lines, and warcio reads the expected pages. Configurations are those of conf/openwayback.
"""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..storage.range_server import RangeServer, serving
from .conftest import Answer, enter_private_network
from .java_classes import class_path
from .killed_changes import CHANGES, Changed, Killing
from .openwayback.configuration import PAGE_SIZE, READER, write_configurations
from .openwayback.server import OpenWayback
from .test_pywb import (
    Query,
    archived_payload,
    blocks_of,
    domain,
    every_paged_query,
    every_query,
    exact,
    expected,
    host,
    replayed_payload,
    text,
)

if TYPE_CHECKING:
    from tests.conftest import BuildCluster, Cluster, RunCdxmill

pytestmark = pytest.mark.xdist_group("openwayback")

# Not only ASCII: the digests of two records are one byte long.
ODD = "hrbrmstr+warc/inst/extdata/20160901-00000.warc.gz"
PLACES = ["path", "file", "http"]
# The lines from the first on that are less than the second.
Span = tuple[bytes, bytes]
EVERYTHING = (b"", b"")


@pytest.fixture(scope="session")
def network() -> Iterator[Executor]:
    """A thread that has, with the processes it starts, a network with only a loopback device."""
    with ThreadPoolExecutor(1, initializer=enter_private_network) as thread:
        yield thread


@pytest.fixture(scope="session")
def archives(served_archives: list[Path], samples: Path) -> list[Path]:
    return [*served_archives, samples / ODD]


@pytest.fixture(scope="session")
def cdx11(
    build_cluster: BuildCluster, archives: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Cluster:
    """A cluster of small blocks, which give several pages, in 4 shards at absolute paths."""
    directory = tmp_path_factory.mktemp("cdx11") / "cluster"
    return build_cluster(directory, archives, 4, "--numlines", "10", "--cdx11")


@pytest.fixture(scope="session")
def shard_server(network: Executor) -> Iterator[RangeServer]:
    server = serving()
    yield network.submit(server.__enter__).result()
    server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def places(
    cdx11: Cluster,
    shard_server: RangeServer,
    run_cdxmill: RunCdxmill,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    """The cluster, a copy with file URIs, and a cluster of the same lines by `cdxmill zipnum` with http URLs."""
    directory = tmp_path_factory.mktemp("places")
    moved = shutil.copytree(cdx11.directory, directory / "file")
    with_locations(moved, moved.as_uri())
    same = ["--splits", cdx11.directory / "splits.txt", "--numlines", "10", cdx11.directory / "cdx"]
    location = f"{shard_server.url}/cluster"
    done = run_cdxmill("zipnum", "-o", directory / "http", "--location", location, *same)
    assert done.returncode == 0, done.stderr
    for shard in (directory / "http").glob("cdx-*.gz"):
        shard_server.add(f"/cluster/{shard.name}", shard.read_bytes())
        shard.unlink()
    return {"path": cdx11.directory, "file": moved, "http": directory / "http"}


def with_locations(cluster: Path, *bases: str) -> Path:
    """Rewrite the cluster's loc file: one location per shard and base."""
    names = sorted(shard.name for shard in cluster.glob("cdx-*.gz"))
    rows = ["\t".join([name, *(f"{base}/{name}" for base in bases)]) for name in names]
    (cluster / "cluster.loc").write_text("".join(f"{row}\n" for row in rows))
    return cluster


@pytest.fixture(scope="session")
def openwayback(
    root: Path,
    places: dict[str, Path],
    archives: list[Path],
    network: Executor,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OpenWayback]:
    """The sample configurations: the CDX server with paths, the replay with file URIs."""
    directory, classes = tmp_path_factory.mktemp("openwayback"), class_path(root, "openwayback")
    webapp, collection = write_configurations(directory, places["path"], places["file"], archives)
    server = OpenWayback(classes, webapp, collection, directory / "openwayback.log", network)
    try:
        yield server
    finally:
        server.stop()


def fields(line: bytes) -> dict[str, str]:
    """The fields of a line that the tests use, by their CDXJ names."""
    _, timestamp, url, mime, status, _, _, _, length, offset, filename = line.decode().split(" ")
    found = {"timestamp": timestamp, "url": url, "mime": mime, "status": status}
    return {**found, "length": length, "offset": offset, "filename": filename}


def read(openwayback: OpenWayback, directory: Path, span: Span, **properties: object) -> Answer:
    """The lines that OpenWayback's reader finds in the cluster in `folder`. A value of None removes a property."""
    files = {"summaryFile": directory / "cluster.summary", "locFile": directory / "cluster.loc"}
    asked = {**READER, **files, **properties, "start": span[0], "end": span[1]}
    return openwayback.get("/lines", **{name: value for name, value in asked.items() if value is not None})


def spans(cluster: Cluster) -> dict[str, Span]:
    """Ranges of all kinds. `end` is never empty, because that means the end of the cluster."""
    starts = [row[0] for row in cluster.index_rows()]
    shards = [row[1] for row in cluster.index_rows()]
    lines = cluster.lines()
    border = shards.index(shards[-1])
    return {
        "first block": (starts[0], starts[1]),
        "last block": (starts[-1], b"~"),
        "blocks and shards": (starts[3], starts[-3]),
        "from within a block into the next shard": (lines[14], starts[border] + b" ~"),
        "one line": (lines[37], lines[37] + b"!"),
        "no line between two": (lines[37] + b"!", lines[38]),
        "before all": (b"!", starts[0]),
        "after all": (b"zzz,", b"zzz-"),
        "more than all": (b"!", b"~"),
    }


def inside(cluster: Cluster, span: Span) -> list[bytes]:
    return [line for line in cluster.lines() if span[0] <= line < span[1]]


def test_the_cluster_has_cdx_lines_in_many_blocks_and_4_shards(cdx11: Cluster) -> None:
    assert cdx11.status == 0, cdx11.stderr
    assert {len(line.split(b" ")) for line in cdx11.lines()} == {11}
    rows = cdx11.index_rows()
    assert len({shard for _, shard, *_ in rows}) == 4
    assert len(rows) > PAGE_SIZE


@pytest.mark.parametrize("place", PLACES)
def test_every_line_comes_in_order(
    openwayback: OpenWayback, cdx11: Cluster, places: dict[str, Path], place: str
) -> None:
    answer = read(openwayback, places[place], EVERYTHING)
    assert (answer.status, answer.body) == (200, text(cdx11.lines()))


@pytest.mark.parametrize("place", PLACES)
def test_a_range_is_exactly_the_cluster_s_lines(
    openwayback: OpenWayback, cdx11: Cluster, places: dict[str, Path], place: str
) -> None:
    for name, span in spans(cdx11).items():
        answer = read(openwayback, places[place], span)
        assert (answer.status, answer.body) == (200, text(inside(cdx11, span))), name


def test_http_shards_are_read_in_ranges_of_blocks(
    openwayback: OpenWayback, cdx11: Cluster, places: dict[str, Path], shard_server: RangeServer
) -> None:
    span = spans(cdx11)["blocks and shards"]
    wanted = [
        (f"/cluster/{shard.decode()}", f"bytes={int(at)}-{int(at) + int(length) - 1}")
        for start, shard, at, length, _ in cdx11.index_rows()[2:-3]
    ]
    shard_server.seen.clear()
    read(openwayback, places["http"], span)
    assert [(path, asked) for _, path, asked in shard_server.seen] == wanted


@pytest.fixture
def copy(cdx11: Cluster, tmp_path: Path) -> Path:
    return shutil.copytree(cdx11.directory, tmp_path / "copy")


def test_replicas_over_http_are_tried_with_cache_remote_loc(
    openwayback: OpenWayback, cdx11: Cluster, shard_server: RangeServer, copy: Path
) -> None:
    with_locations(copy, f"{shard_server.url}/gone", f"{shard_server.url}/cluster")
    assert read(openwayback, copy, EVERYTHING).status == 500
    answer = read(openwayback, copy, EVERYTHING, cacheRemoteLoc="true")
    assert (answer.status, answer.body) == (200, text(cdx11.lines()))


@pytest.mark.parametrize("base", ["https://127.0.0.1/cluster", "s3://bucket/cluster", "/nowhere", "cluster"])
def test_an_unreadable_location_is_an_error(openwayback: OpenWayback, copy: Path, base: str) -> None:
    answer = read(openwayback, with_locations(copy, base), EVERYTHING)
    assert (answer.status, b"No such file" in answer.body) == (500, True)


def test_a_plain_index_needs_no_loc_file(openwayback: OpenWayback, cdx11: Cluster, copy: Path) -> None:
    (copy / "cluster.loc").unlink()
    answer = read(openwayback, copy, EVERYTHING, locFile=None, checkInterval=None)
    assert (answer.status, answer.body) == (200, text(cdx11.lines()))


def test_answers_during_changes_are_old_or_new(openwayback: OpenWayback, cdx11: Cluster, copy: Path) -> None:
    """The changes are killed at random moments, and made again."""
    new = with_locations(copy, str(copy)).parent / "new.cdx"
    fields = [line.split(b" ", 2) for line in cdx11.lines()[::9]]
    more = [b" ".join((key, b"19990101000000", rest)) for key, _, rest in fields]
    new.write_bytes(text(more))
    states = {text(cdx11.lines()): "old", text(sorted([*cdx11.lines(), *more])): "new"}
    killing, seen = Killing(Changed(copy, new, {"to": "1999"})), Counter[str]()
    with ThreadPoolExecutor(1) as changing:
        for number in range(CHANGES):
            changed = changing.submit(killing.change, number)
            while not changed.done():
                answer = read(openwayback, copy, EVERYTHING)
                assert answer.status == 200
                seen[states[answer.body]] += 1
            changed.result()
    killing.check(seen)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_cluster_may_be_tiny(
    openwayback: OpenWayback, cdx11: Cluster, run_cdxmill: RunCdxmill, tmp_path: Path, count: int
) -> None:
    lines = cdx11.lines()[:count]
    (tmp_path / "few.cdx").write_bytes(b" CDX N b a m s k r M S V g\n" + text(lines))
    assert run_cdxmill("zipnum", "-o", tmp_path / "few", "-s", "1", tmp_path / "few.cdx").returncode == 0
    answer = read(openwayback, tmp_path / "few", EVERYTHING)
    assert (answer.status, answer.body) == (200, text(lines))


def test_the_sample_configuration_allows_a_long_last_key(
    openwayback: OpenWayback, cdx11: Cluster, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    """By default, OpenWayback's search fails if the last line of the summary is longer than 8192 bytes."""
    key, rest = cdx11.lines()[-1].split(b" ", 1)
    lines = [*cdx11.lines(), b"%b%b %b" % (key, b"x" * 30000, rest)]
    (tmp_path / "long.cdx").write_bytes(text(lines))
    done = run_cdxmill("zipnum", "-o", tmp_path / "long", "-s", "2", "--numlines", "1", tmp_path / "long.cdx")
    assert done.returncode == 0
    the_end = (lines[-2], b"~")
    answer = read(openwayback, tmp_path / "long", the_end)
    assert (answer.status, answer.body) == (200, text(lines[-2:]))
    assert read(openwayback, tmp_path / "long", the_end, binsearchBlockSize=8192).status == 500


def ask(openwayback: OpenWayback, query: Query, **params: object) -> bytes:
    """The decompressed answer of the CDX server. A compressed answer is in UTF-8."""
    packed = openwayback.cdx(url=query.url, matchType=query.match_type, gzip="true", **params)
    return gzip.decompress(packed)


@every_query
def test_an_answer_is_exactly_the_cluster_s_lines(
    openwayback: OpenWayback, cdx11: Cluster, query: Query
) -> None:
    assert ask(openwayback, query) == text(expected(cdx11, query))


def test_a_star_asks_for_a_prefix_or_a_domain(openwayback: OpenWayback, cdx11: Cluster) -> None:
    assert openwayback.cdx(url="*.archive.org") == text(
        expected(cdx11, domain("archive.org", b"org,archive"))
    )
    assert openwayback.cdx(url="archive.org/*") == text(expected(cdx11, host("archive.org", b"org,archive")))


def test_every_line_is_found_by_its_own_url(openwayback: OpenWayback, cdx11: Cluster) -> None:
    for key, found in groupby(cdx11.lines(), key=lambda line: line.split(b" ", 1)[0]):
        lines = list(found)
        url = fields(lines[0])["url"].replace("metadata://", "http://")
        if not url.startswith("urn:"):
            assert ask(openwayback, exact(url, key)) == text(lines)


def test_an_absent_url_has_an_empty_answer(openwayback: OpenWayback) -> None:
    assert openwayback.cdx(url="http://www.iana.org/never-was-there") == b""
    assert openwayback.cdx(url="nowhere.invalid", matchType="domain") == b""


def test_an_uncompressed_answer_is_in_latin_1(openwayback: OpenWayback, cdx11: Cluster) -> None:
    query = exact("https://rapid7.com/", b"com,rapid7)/")
    lines = text(expected(cdx11, query))
    assert not lines.isascii()
    assert openwayback.cdx(url=query.url) == lines.decode().encode("latin-1")


@pytest.mark.parametrize("page_size", [1, 2, 7])
@every_paged_query
def test_the_number_of_pages_follows_from_the_blocks_and_the_pages_add_up_to_the_answer(
    openwayback: OpenWayback, cdx11: Cluster, query: Query, page_size: int
) -> None:
    pages = int(ask(openwayback, query, showNumPages="true", pageSize=page_size))
    assert pages == -(-blocks_of(cdx11, query) // page_size)
    answers = [ask(openwayback, query, page=page, pageSize=page_size) for page in range(pages)]
    assert b"".join(answers) == text(expected(cdx11, query))
    assert max(answer.count(b"\n") for answer in answers) <= 10 * page_size
    assert ask(openwayback, query, page=pages, pageSize=page_size) == b""


def test_the_configured_page_size_ends_every_answer(openwayback: OpenWayback, cdx11: Cluster) -> None:
    query = domain("org", b"org")
    lines = text(expected(cdx11, query))
    assert blocks_of(cdx11, query) > PAGE_SIZE
    first = ask(openwayback, query, page=0)
    assert ask(openwayback, query) == first != lines
    assert ask(openwayback, query, page=0, pageSize=1000) == first
    assert first + ask(openwayback, query, page=1) == lines


def test_the_paged_index_is_the_rows_of_the_summary(openwayback: OpenWayback, cdx11: Cluster) -> None:
    query = domain("archive.org", b"org,archive")
    rows = (cdx11.directory / "cluster.summary").read_bytes().splitlines()
    shown = ask(openwayback, query, showPagedIndex="true", page=0).splitlines()
    wanted = [row for row in rows if query.start <= row < query.end]
    assert shown[1:] == wanted
    assert shown[0] == rows[rows.index(wanted[0]) - 1]


@pytest.mark.parametrize("limit", [1, 3, 11])
def test_limit_takes_the_first_lines(openwayback: OpenWayback, cdx11: Cluster, limit: int) -> None:
    query = domain("archive.org", b"org,archive")
    assert ask(openwayback, query, limit=limit) == text(expected(cdx11, query)[:limit])
    assert ask(openwayback, query, limit=-limit - 1) == text(expected(cdx11, query)[-limit - 1 :])


def test_an_exact_answer_can_be_reversed(openwayback: OpenWayback, cdx11: Cluster) -> None:
    query = exact("http://www.archive.org/", b"org,archive)/")
    lines = expected(cdx11, query)[::-1]
    assert len(lines) > 1
    assert ask(openwayback, query, sort="reverse") == text(lines)
    assert ask(openwayback, query, limit=-1) == text(lines[:1])


def test_from_and_to_bound_the_timestamps(openwayback: OpenWayback, cdx11: Cluster) -> None:
    query = host("www.iana.org", b"org,iana")
    lines = expected(cdx11, query)
    wanted = [line for line in lines if "20140126200700" <= fields(line)["timestamp"] <= "20140126200899"]
    assert 0 < len(wanted) < len(lines)
    assert ask(openwayback, query, **{"from": "201401262007", "to": "201401262008"}) == text(wanted)


def test_filters_see_the_fields_of_the_lines(openwayback: OpenWayback, cdx11: Cluster) -> None:
    query = domain("archive.org", b"org,archive")
    wanted = [
        line
        for line in expected(cdx11, query)
        if fields(line)["status"] != "200" and fields(line)["mime"].startswith("text/")
    ]
    assert wanted
    assert ask(openwayback, query, filter=["!statuscode:200", "mimetype:text/.*"]) == text(wanted)


def captures(cluster: Cluster) -> Iterator[list[dict[str, str]]]:
    """The lines with status 200 that are no revisits, those with the same key and timestamp together."""
    for _, lines in groupby(cluster.lines(), key=lambda line: line.split(b" ", 2)[:2]):
        same = [fields(line) for line in lines]
        if all(line["status"] == "200" and line["mime"] != "warc/revisit" for line in same):
            yield same


def test_every_page_replays_as_stored_in_its_archive(
    openwayback: OpenWayback, cdx11: Cluster, served_archives: list[Path]
) -> None:
    paths = {path.name: path for path in served_archives}
    seen: set[str] = set()
    for same in captures(cdx11):
        if not all(line["filename"] in paths for line in same):
            continue
        answer = openwayback.get(f"/wayback/{same[0]['timestamp']}id_/{same[0]['url']}")
        assert answer.status == 200, (same, answer)
        archived = [archived_payload(paths[line["filename"]], line) for line in same]
        assert replayed_payload(answer) in archived, same
        seen.update(line["filename"] for line in same)
    assert seen >= {"iana.warc.gz", "example.arc.gz", "example.arc", "example-extra.warc"}
