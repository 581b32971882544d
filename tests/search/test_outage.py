"""A process that lives longer than an outage of its storage, such as a CDX server, reads again after it."""

from __future__ import annotations

from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster import reader
from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import InputError, OutageError
from cdxmill.options.queries import Query
from cdxmill.search.kept import KeptCluster
from cdxmill.search.opened import OpenCluster
from cdxmill.search.query import PreparedQuery
from cdxmill.storage import hosts, patience

from ..material.cdx_files import write_plain
from ..material.clock import Clock
from .conftest import ALL, HOSTS, Remote, line_of


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (hosts, patience, reader):
        monkeypatch.setattr(module, "time", made)
    return made


def lines_at(cluster: OpenCluster, url: str) -> list[bytes]:
    """What a CDX server answers: its clusters stay open."""
    prepared = PreparedQuery(Query(match_type="exact"))
    return [line for lines in prepared.answer(cluster, prepared.keys(url)) for line in lines]


def page_of(host: str, page: int) -> tuple[str, list[bytes]]:
    return f"http://{host}/page/{page:04d}", [line_of(host, page, day) for day in (1, 2)]


@pytest.mark.parametrize(("status", "rest", "requests"), [(503, 60, 1), (403, 900, 2)])
def test_an_open_cluster_is_read_again_after_an_outage(
    status: int, rest: float, requests: int, remote: Remote, clock: Clock
) -> None:
    """It was refused for ever, until the process was started again."""
    files = remote.server.files.values()
    with open_cluster(remote.url) as opened:
        cluster = OpenCluster.of(opened)
        url, lines = page_of("b.com", 123)
        assert lines_at(cluster, url) == lines
        clock.now += 100
        for file in files:
            file.statuses = [status] * 100
        for host in (*HOSTS, HOSTS[0]):  # the first finds no cluster.loc: the server has answered
            with pytest.raises(OutageError):
                lines_at(cluster, page_of(host, 321)[0])
        asked = len(remote.server.seen)
        clock.now += rest - 10
        with pytest.raises(OutageError, match="not requested, because"):
            lines_at(cluster, page_of(HOSTS[0], 321)[0])
        assert len(remote.server.seen) == asked
        clock.now += 10
        for _ in range(2):
            with pytest.raises(OutageError):
                lines_at(cluster, page_of(HOSTS[0], 321)[0])
            assert len(remote.server.seen) == asked + requests, (
                "one try of the index, and one of a shard if that is only refused"
            )
        for file in files:
            file.statuses = []
        clock.now += rest
        for host in HOSTS:
            url, lines = page_of(host, 321)
            assert lines_at(cluster, url) == lines


def test_shards_elsewhere_are_found_after_an_outage(remote: Remote, clock: Clock) -> None:
    """A cluster.loc that could not be read when it was first needed was taken for one without rows, for ever."""
    body = remote.server.files.pop("/c/cdx-00000.gz").body
    remote.server.add("/other/cdx-00000.gz", body)
    table = remote.server.add(
        "/c/cluster.loc", f"cdx-00000.gz\t{remote.server.url}/other/cdx-00000.gz\n".encode()
    )
    table.statuses = [503] * patience.MORE_TRIES
    url, lines = page_of("a.com", 123)
    with open_cluster(remote.url) as opened:
        cluster = OpenCluster.of(opened)
        with pytest.raises(OutageError, match=r"cluster\.loc: did not answer"):
            lines_at(cluster, url)
        clock.now += 60
        table.statuses = []
        assert lines_at(cluster, url) == lines


def test_a_cluster_that_is_replaced_on_a_web_server_is_opened_again(
    remote: Remote, clock: Clock, tmp_path: Path
) -> None:
    """A CDX server went on with the old index, and could not read the new shards, until it was started again."""
    first = page_of("a.com", 1)
    kept = KeptCluster(remote.url)
    with kept.opened() as cluster:
        assert lines_at(cluster, first[0]) == first[1]
    lines = [line for line in ALL if b"page/0001" not in line]
    path = write_plain(tmp_path / "new.cdxj", lines)
    cdxmill.zipnum(path, output=tmp_path / "new", shards=3, numlines=20)
    for place in ("cluster.idx", *(f"cdx-0000{number}.gz" for number in range(3))):
        remote.server.add(f"/c/{place}", (tmp_path / "new" / place).read_bytes()).etag = '"two"'
    with kept.opened() as cluster, pytest.raises(InputError):
        lines_at(cluster, first[0])
    clock.now += 6
    with kept.opened() as cluster:
        assert lines_at(cluster, first[0]) == []
        assert lines_at(cluster, page_of("c.org", 300)[0]) == page_of("c.org", 300)[1]
    kept.close()
