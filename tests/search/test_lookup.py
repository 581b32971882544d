"""Lookups give what a plain filter over all lines gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.formats.lines.surt import surt
from cdxmill.running.failures import Failures
from cdxmill.search.lookup import lookup

from ..material.cdx_files import write_plain
from ..material.clusters import rows_of, shards_of

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

HOSTS = ["a.com", "b.com", "a.b.com", "ab.com", "b-a.com", "z.org"]
PATHS = [
    "/",
    "/a",
    "/a/",
    "/a/b",
    "/ab",
    "/a?b",
    "/a?b=c",
    "/a-b",
    "/b/c/d",
    "/~a",
    "/%C3%A9",
    "/a/index.html",
]


def captures() -> list[tuple[str, bytes]]:
    """URLs with their lines: some often, so that they go over several blocks, some once."""
    source = random.Random(3)
    urls = [f"http://{host}{path}" for host in HOSTS for path in PATHS]
    often = {url: source.choice([1, 1, 2, 5, 40]) for url in urls}
    return [
        (url, b'%b %d {"n": "%d"}' % (surt(url.encode()), 20200101000000 + number, source.randrange(100)))
        for url in urls
        for number in range(often[url])
    ]


@pytest.fixture(scope="module", params=[1, 7], ids=["a line a block", "seven lines a block"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("lookup")
    path = write_plain(directory / "a.cdxj", [line for _, line in captures()])
    build_cluster(
        [str(path)],
        directory / "C",
        ZipnumOptions(shards=5, block_lines=request.param, quiet=True),
        Failures(),
    )
    return directory / "C"


def lines_of(cluster: Path) -> list[bytes]:
    return b"".join(shards_of(cluster)).split(b"\n")[:-1]


def test_every_url_gives_exactly_its_lines(cluster: Path) -> None:
    lines = lines_of(cluster)
    urls = {url for url, _ in captures()}
    absent = {
        f"http://{host}{path}"
        for host in (*HOSTS, "0.com", "c.com", "zz.org", "a.net")
        for path in ("/none", "/A/b/c", "/zz")
    }
    for url in urls | absent:
        key = surt(url.encode()) + b" "
        assert list(lookup(cluster, url)) == [line for line in lines if line.startswith(key)]


def test_a_prefix_gives_every_url_that_starts_so(cluster: Path) -> None:
    lines = lines_of(cluster)
    prefixes = {
        f"http://{host}{path[:size]}" for host in HOSTS for path in PATHS for size in range(1, len(path) + 1)
    }
    for prefix in prefixes:
        key = surt(prefix.encode())
        if prefix.endswith("/") and not key.endswith(b"/"):
            key += b"/"
        if prefix.endswith("?"):
            key += b"?"
        found = list(lookup(cluster, prefix + "*"))
        assert found == [line for line in lines if line.startswith(key)]


def test_a_prefix_is_one_of_urls_as_pywb_has_it(cluster: Path) -> None:
    def found(url: str) -> set[bytes]:
        return {line.split(b" ")[0] for line in lookup(cluster, url)}

    assert {b"com,b)/", b"com,b)/a", b"com,b)/b/c/d"} <= found("http://b.com/*")
    assert b"com,b,a)/" not in found("http://b.com/*")
    assert found("http://b.com/a/*") == {b"com,b)/a/b", b"com,b)/a/index.html"}
    assert found("http://b.com/a?*") == {b"com,b)/a?b", b"com,b)/a?b=c"}
    assert found("http://c.com/*") == set()


def test_keys_at_the_borders_of_blocks_and_shards_are_found(cluster: Path) -> None:
    lines = lines_of(cluster)
    rows = [row for part in sorted(cluster.glob("part-*")) for row in rows_of(part.read_bytes())]
    by_key = {surt(url.encode()): url for url, _ in captures()}
    for key in {row.key.split(b" ")[0] for row in rows}:
        assert list(lookup(cluster, by_key[key])) == [line for line in lines if line.startswith(key + b" ")]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = write_plain(tmp_path / "a.cdxj", [line for _, line in captures()])
    build_cluster(
        [str(path)], tmp_path / "C", ZipnumOptions(shards=2, block_lines=50, quiet=True), Failures()
    )
    return tmp_path / "C"


def test_the_command_prints_the_lines(small: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("lookup", small, "http://a.com/*")
    wanted = [line for line in lines_of(small) if line.startswith(b"com,a)/")]
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"".join(line + b"\n" for line in wanted)
    assert run_cdxmill("lookup", small, "http://absent.example/").stdout == b""


def test_a_moved_cluster_can_be_read(small: Path, run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    before = run_cdxmill("lookup", small, "http://a.com/*").stdout
    small.rename(tmp_path / "moved")
    assert run_cdxmill("lookup", tmp_path / "moved", "http://a.com/*").stdout == before != b""


def test_shards_elsewhere_are_found_by_their_locations(
    small: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    before = run_cdxmill("lookup", small, "http://a.com/*").stdout
    (tmp_path / "there").mkdir()
    for shard in small.glob("cdx-*.gz"):
        shard.rename(tmp_path / "there" / shard.name)
    (small / "cluster.loc").write_bytes(
        b"".join(
            b"%b\t../there/%b\n" % (path.name.encode(), path.name.encode())
            for path in (tmp_path / "there").iterdir()
        )
    )
    assert run_cdxmill("lookup", small, "http://a.com/*").stdout == before != b""


def told(run_cdxmill: RunCdxmill, cluster: Path, url: str, status: int) -> str:
    """The one line of a lookup that fails."""
    done = run_cdxmill("lookup", cluster, url)
    assert done.returncode == status, done.stderr
    (line,) = done.stderr.decode().splitlines()
    return line


def test_a_corrupt_block_is_reported_in_one_line(small: Path, run_cdxmill: RunCdxmill) -> None:
    shard = small / "cdx-00000.gz"
    data = bytearray(shard.read_bytes())
    data[30] ^= 1
    shard.write_bytes(data)
    line = told(run_cdxmill, small, "http://a.com/*", 1)
    assert "cdx-00000.gz@0: the block is corrupt" in line
    assert run_cdxmill("lookup", small, "http://z.org/*").returncode == 0


@pytest.mark.parametrize("lost", ["cdx-00000.gz", "cdx-0000*.gz"])
def test_a_missing_shard_is_reported_in_one_line(lost: str, small: Path, run_cdxmill: RunCdxmill) -> None:
    for path in list(small.glob(lost)):
        path.unlink()
    assert "cdx-00000.gz: cannot be read" in told(run_cdxmill, small, "http://a.com/*", 1)


@pytest.mark.parametrize(
    "index",
    [
        b"garbage\n",
        b"a 1\tcdx\xff\t0\t7\t1\n",
        b"\xff" * 100_000,
        b"a 1\tcdx-00000.gz\t0\t" + b"9" * 18 + b"\n",
    ],
    ids=["no fields", "bytes that are no name", "no line end", "a length beyond any file"],
)
def test_a_corrupt_index_is_reported_in_one_line(index: bytes, small: Path, run_cdxmill: RunCdxmill) -> None:
    (small / "cluster.idx").write_bytes(index)
    told(run_cdxmill, small, "http://a.com/*", 1)


def test_unreadable_locations_are_reported_in_one_line(small: Path, run_cdxmill: RunCdxmill) -> None:
    (small / "cluster.loc").unlink()
    (small / "cluster.loc").mkdir()
    assert "cluster.loc: cannot be read" in told(run_cdxmill, small, "http://a.com/*", 1)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (".", "(no cluster.idx or cluster.summary)"),
        ("absent", "(no such file or directory); check the path"),
    ],
)
def test_a_missing_cluster_is_reported_in_one_line(
    what: str, why: str, small: Path, run_cdxmill: RunCdxmill
) -> None:
    message = told(run_cdxmill, small.parent / what, "http://a.com/*", 2)
    assert message.rstrip().endswith(f"not a ZipNum cluster {why}")


def test_a_star_alone_is_all_lines(small: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("lookup", small, "*")
    assert done.stdout == b"".join(shards_of(small))
    assert int(run_cdxmill("lookup", small, "*", "--count").stdout) == done.stdout.count(b"\n")


@pytest.mark.parametrize(("url", "reason"), [("", "URL is empty"), ("**", "not a URL that can be looked up")])
def test_an_invalid_url_is_reported_in_one_line(
    url: str, reason: str, small: Path, run_cdxmill: RunCdxmill
) -> None:
    assert reason in told(run_cdxmill, small, url, 2)
