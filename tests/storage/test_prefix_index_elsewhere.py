"""Prefix B-trees on servers: few requests, which are counted, and no wrong answer if a server is in trouble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.cli.main import main
from cdxmill.commands.prefix_index import build_tree
from cdxmill.errors import InputError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.trees import TreeBuilding
from cdxmill.running.failures import Failures
from cdxmill.search import prefix_index
from cdxmill.search.prefix_index import open_prefix_index

from ..material.trees import found_in
from .range_server import RangeServer

HOSTS, PAGES = 40, 200
LINES = [
    b'com,host%02d)/page/%03d 20200101000000 {"url": "http://host%02d.com/page/%03d", "status": "200", "length": "9",'
    b' "offset": "%d", "filename": "a%d-%d.warc.gz"}' % (host, page, host, page, page, host, page)
    for host in range(HOSTS)
    for page in range(PAGES)
]
NAME = "/x.tree"


def build(directory: Path, output: str, block_size: int = 1024) -> None:
    (directory / "a.cdxj").write_bytes(b"\n".join([*LINES, b""]))
    asked = TreeBuilding(directory / "a.cdxj", output=output, block_size=block_size)
    build_tree(asked, Failures(printed=False))


@pytest.fixture
def url(tmp_path: Path, server: RangeServer) -> str:
    """The URL of a tree with three levels, and eight groups of names."""
    build(tmp_path, str(tmp_path / "x.tree"))
    server.add(NAME, (tmp_path / "x.tree").read_bytes())
    return server.url + NAME


@pytest.fixture
def small_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request has the header and the root, as in a large file, and no other block."""
    monkeypatch.setattr(prefix_index, "HEAD", 1200)


def wanted(prefix: bytes) -> list[bytes]:
    return [line for line in LINES if line.startswith(prefix)]


@pytest.mark.usefixtures("small_head")
@pytest.mark.parametrize(
    ("query", "prefix"),
    [
        ("http://host37.com/page/023", b"com,host37)/page/023 "),
        ("http://host37.com/page/none", b"-"),
        ("host37.com/page/02*", b"com,host37)/page/02"),
        ("*.net", b"net"),
    ],
)
def test_a_search_needs_no_more_than_four_requests_with_the_names(
    url: str, server: RangeServer, query: str, prefix: bytes
) -> None:
    with open_prefix_index(url) as index:
        assert index.tree.count_reads() == 3
    server.seen.clear()
    assert found_in(url, query) == wanted(prefix)
    ranges = server.ranges(NAME)
    assert len(server.seen) == len(ranges) == (4 if wanted(prefix) else 3)


@pytest.mark.usefixtures("small_head")
def test_index_and_names_are_read_once_as_long_as_the_file_is_the_same(
    url: str, server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    for requests in (4, 2):
        server.seen.clear()
        assert found_in(url, "http://host37.com/page/023") == wanted(b"com,host37)/page/023 ")
        assert len(server.seen) == requests
    kept = sorted((tmp_path / "cache").rglob("*"))
    assert found_in(str(tmp_path / "x.tree"), "http://host37.com/page/023") == wanted(
        b"com,host37)/page/023 "
    )
    assert sorted((tmp_path / "cache").rglob("*")) == kept, "a file of this machine is read itself"
    lines = [line.replace(b"warc.gz", b"arc.gz!") for line in LINES]
    (tmp_path / "a.cdxj").write_bytes(b"\n".join([*lines, b""]))
    asked = TreeBuilding(tmp_path / "a.cdxj", output=tmp_path / "y.tree", block_size=1024)
    build_tree(asked, Failures(printed=False))
    server.add(NAME, (tmp_path / "y.tree").read_bytes())
    assert found_in(url, "http://host37.com/page/023")[0] in lines


def test_long_answers_read_the_names_of_many_archives_at_once(url: str, server: RangeServer) -> None:
    whole = server.files[NAME].body
    assert found_in(url, "*.host36.com", "*.host37.com") == wanted(b"com,host36)") + wanted(b"com,host37)")
    with open_prefix_index(url) as index:
        start = index.names.place.start
    names = [one for one in server.ranges(NAME) if one and int(one[6:].partition("-")[0]) >= start]
    assert len(whole) - start > 1 << 14
    assert 1 <= len(names) <= 2


def test_every_url_needs_no_more_than_three_requests(url: str, server: RangeServer) -> None:
    for line in LINES[::163]:
        key = line.split(b" ")[0]
        with open_prefix_index(url) as index:
            server.seen.clear()
            low = key[: len(key) - len(line) % 4]
            assert next(index.items([KeyRange(low, low + b"\xff")]))[0][0].startswith(low)
            assert len(server.ranges(NAME)) <= 2  # the first was sent when it was opened


def test_a_scan_of_all_needs_few_requests(url: str, server: RangeServer) -> None:
    assert found_in(url, "*.com") == LINES
    assert len(server.ranges(NAME)) <= 12  # 2, 4, 8 ... blocks


def test_a_head_of_64_kib_has_the_header_and_the_root(url: str, server: RangeServer) -> None:
    found_in(url, "http://host17.com/page/023")
    assert server.ranges(NAME)[0] == "bytes=0-73727"


@pytest.mark.usefixtures("hurry")
def test_truncated_answers_and_busy_servers_change_nothing(url: str, server: RangeServer) -> None:
    file = server.files[NAME]
    file.cuts, file.statuses = [50, 700], [503, 429]
    assert found_in(url, "*.host17.com") == wanted(b"com,host17)")


@pytest.mark.usefixtures("hurry")
def test_a_server_in_trouble_is_an_error(
    url: str, server: RangeServer, capfd: pytest.CaptureFixture[str]
) -> None:
    file = server.files[NAME]
    file.statuses = [503] * 99
    assert main(["prefix-index", "search", url, "*.host17.com"]) == 3
    file.statuses = []
    file.shift = 10
    assert main(["prefix-index", "search", url, "*.host17.com"]) == 1
    out, told = capfd.readouterr()
    assert out == ""
    assert [line.startswith(f"cdxmill: {url}: ") for line in told.splitlines()] == [True, True]


def test_a_server_without_ranges_is_read_once(url: str, server: RangeServer) -> None:
    server.files[NAME].knows_ranges = False
    assert found_in(url, "*.host17.com") == wanted(b"com,host17)")


def test_a_file_that_changes_while_it_is_read_is_an_error(url: str, server: RangeServer) -> None:
    with open_prefix_index(url) as index:
        server.files[NAME].etag = '"two"'
        with pytest.raises(InputError, match="changed"):
            list(index.items([KeyRange(b"com,", b"com-")]))


@pytest.mark.parametrize("blocks", [1, 5, 30])
def test_a_truncated_file_is_an_error_where_the_answer_needs_the_rest(
    url: str, server: RangeServer, blocks: int
) -> None:
    file = server.files[NAME]
    with open_prefix_index(url) as index:
        names = len(index.names.place)
    file.body = file.body[: -1024 * (blocks - 1) - (names if blocks > 1 else names // 2)]
    with pytest.raises(InputError, match=r"x\.tree@\d+: the file is truncated"):
        found_in(url, "*.com")
    with open_prefix_index(url) as index:
        assert sum(map(len, index.items([KeyRange(b"com,host00)", b"com,host00*")]))) == PAGES


def test_missing_files_are_errors(url: str, server: RangeServer) -> None:
    with pytest.raises(InputError, match="404"):
        found_in(f"{url}2", "*.com")


def test_a_tree_is_built_and_searched_in_s3(
    tmp_path: Path, moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="trees")
    build(tmp_path, "s3://trees/x.tree")
    assert found_in("s3://trees/x.tree", "*.host17.com") == wanted(b"com,host17)")
    assert main(["prefix-index", "build", "-q", "-o", "s3://trees/x.tree", str(tmp_path / "a.cdxj")]) == 2


QUERIES = [f"http://host{number * 7 % 40:02d}.com/page/{number * 13 % 200:03d}" for number in range(600)]


def answer_of(words: list[str], capfdbinary: pytest.CaptureFixture[bytes]) -> bytes:
    assert main(words) == 0
    return capfdbinary.readouterr().out


@pytest.mark.usefixtures("small_head")
@pytest.mark.parametrize("command", ["prefix-index search", "lookup"])
def test_many_urls_need_few_requests(
    url: str, server: RangeServer, command: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "queries").write_text("\n".join([*QUERIES, "http://none.com/", ""]))
    words = [*command.split(), str(tmp_path / "x.tree"), "-i", str(tmp_path / "queries")]
    local = answer_of(words, capfdbinary)
    assert len(local.splitlines()) == len(QUERIES)
    words[-3] = url
    assert answer_of(words, capfdbinary) == local
    assert len(server.seen) <= 7
    if command != "lookup":  # there, --limit is per URL
        assert answer_of([*words, "--limit", "3"], capfdbinary).splitlines() == local.splitlines()[:3]


def test_many_urls_in_a_file_of_2012_need_few_requests(
    tmp_path: Path, server: RangeServer, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = [b"com.host%02d/page/%03d:http\t1 2 3 4 %d\n" % (host, page, page) for host in range(40) for page in range(200)]  # fmt: skip
    (tmp_path / "a.tsv").write_bytes(b"".join(rows))
    build_tree(
        TreeBuilding(tmp_path / "a.tsv", output=tmp_path / "x.tree", block_size=1024), Failures(printed=False)
    )
    server.add(NAME, (tmp_path / "x.tree").read_bytes())
    (tmp_path / "queries").write_text("\n".join(QUERIES))
    words = ["lookup", str(tmp_path / "x.tree"), "-i", str(tmp_path / "queries")]
    local = answer_of(words, capfdbinary)
    words[1] = server.url + NAME
    assert answer_of(words, capfdbinary) == local
    assert len(local.splitlines()) == len(QUERIES)
    assert len(server.seen) <= 7


@pytest.mark.usefixtures("small_head")
@pytest.mark.parametrize("block", [3, 200])
def test_damage_that_one_of_many_urls_meets_costs_no_url_before_it(
    url: str, server: RangeServer, block: int, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with open_prefix_index(url) as index:
        offset = index.tree.header.offset(block)
        assert (block < index.tree.header.index_blocks) == (block == 3)
    file = server.files[NAME]
    file.body = file.body[: offset + 9] + b"x" + file.body[offset + 10 :]
    (tmp_path / "queries").write_text("\n".join(sorted(QUERIES)))
    assert main(["prefix-index", "search", url, "-i", str(tmp_path / "queries")]) == 1
    out, told = capfdbinary.readouterr()
    assert b"x.tree@%d: the block is corrupt" % offset in told
    assert len(out.splitlines()) > 20
