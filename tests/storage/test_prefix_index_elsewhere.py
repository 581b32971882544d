"""Prefix B-trees on servers: few requests, which are counted, and no wrong answer if a server is in trouble."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from cdxmill.cli.main import main
from cdxmill.commands.prefix_index import build_tree
from cdxmill.errors import AbsentError, InputError, RefusedError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.trees import TreeBuilding
from cdxmill.running.failures import Failures
from cdxmill.search.prefix_index import find_captures, open_prefix_index
from cdxmill.storage import s3

from .range_server import RangeServer

HOSTS, PAGES = 40, 50
LINES = [
    b'com,host%02d)/page/%03d 20200101000000 {"url": "http://host%02d.com/page/%03d", "status": "200", "length": "9",'
    b' "offset": "%d", "filename": "a%d.warc.gz"}' % (host, page, host, page, page, host)
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
    """The URL of a tree with three levels, and a side file."""
    build(tmp_path, str(tmp_path / "x.tree"))
    for ending in ("", ".archives.gz"):
        server.add(NAME + ending, (tmp_path / f"x.tree{ending}").read_bytes())
    return server.url + NAME


def found(url: str, query: str) -> list[bytes]:
    return [line for lines in find_captures(url, [query]) for line in lines]


def wanted(prefix: bytes) -> list[bytes]:
    return [line for line in LINES if line.startswith(prefix)]


@pytest.mark.parametrize(
    ("query", "prefix"),
    [
        ("http://host17.com/page/023", b"com,host17)/page/023 "),
        ("http://host17.com/page/none", b"-"),
        ("host17.com/page/02*", b"com,host17)/page/02"),
        ("*.host00.com", b"com,host00)"),
        ("*.net", b"net"),
    ],
)
def test_a_search_needs_no_more_than_three_requests(
    url: str, server: RangeServer, query: str, prefix: bytes
) -> None:
    with open_prefix_index(url) as index:
        assert index.tree.count_reads() == 3
    server.seen.clear()
    assert found(url, query) == wanted(prefix)
    ranges = server.ranges(NAME)
    most = 3 if "*." not in query else 6  # a domain goes on over many blocks of this size
    assert 2 <= len(ranges) <= most
    assert len(server.ranges(f"{NAME}.archives.gz")) <= 1


def test_every_url_needs_no_more_than_three_requests(url: str, server: RangeServer) -> None:
    for line in LINES[::163]:
        key = line.split(b" ")[0]
        with open_prefix_index(url) as index:
            server.seen.clear()
            low = key[: len(key) - len(line) % 4]
            assert next(index.items([KeyRange(low, low + b"\xff")]))[0][0].startswith(low)
            assert len(server.ranges(NAME)) <= 2  # the first was sent when it was opened


def test_a_scan_of_all_needs_few_requests(url: str, server: RangeServer) -> None:
    assert found(url, "*.com") == LINES
    assert len(server.ranges(NAME)) <= 12  # 2, 4, 8 ... blocks


def test_a_head_of_64_kib_has_the_header_and_the_root(url: str, server: RangeServer) -> None:
    found(url, "http://host17.com/page/023")
    assert server.ranges(NAME)[0] == "bytes=0-65543"


@pytest.mark.usefixtures("hurry")
def test_truncated_answers_and_busy_servers_change_nothing(url: str, server: RangeServer) -> None:
    file = server.files[NAME]
    file.cuts, file.statuses = [50, 700], [503, 429]
    assert found(url, "*.host17.com") == wanted(b"com,host17)")


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("ending", ["", ".archives.gz"])
def test_a_server_in_trouble_is_an_error(
    url: str, server: RangeServer, ending: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = server.files[NAME + ending]
    file.statuses = [503] * 99
    assert main(["prefix-index", "search", url, "*.host17.com"]) == 1
    file.statuses = []
    file.shift = 10
    assert main(["prefix-index", "search", url, "*.host17.com"]) == 1
    out, told = capfd.readouterr()
    assert out == ""
    assert [line.startswith(f"cdxmill: {url}{ending}: ") for line in told.splitlines()] == [True, True]


def test_a_server_without_ranges_is_read_once(url: str, server: RangeServer) -> None:
    server.files[NAME].knows_ranges = False
    assert found(url, "*.host17.com") == wanted(b"com,host17)")


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
    file.body = file.body[: -1024 * blocks]
    with pytest.raises(InputError, match="truncated"):
        found(url, "*.com")
    assert found(url, "*.host00.com") == wanted(b"com,host00)")


def test_missing_files_are_errors(url: str, server: RangeServer) -> None:
    with pytest.raises(InputError, match="404"):
        found(f"{url}2", "*.com")
    del server.files[f"{NAME}.archives.gz"]
    with pytest.raises(InputError, match=r"x\.tree\.archives\.gz.* is missing"):
        found(url, "*.com")


def test_a_tree_is_built_and_searched_in_s3(
    tmp_path: Path, moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    client: Any = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="trees")
    build(tmp_path, "s3://trees/x.tree")
    assert found("s3://trees/x.tree", "*.host17.com") == wanted(b"com,host17)")
    assert main(["prefix-index", "build", "-q", "-o", "s3://trees/x.tree", str(tmp_path / "a.cdxj")]) == 2


def test_the_layout_beside_the_tree_is_found_by_one_request(
    tmp_path: Path, server: RangeServer, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tsv").write_bytes(b"http://a.com/\t1 2\n")
    asked = TreeBuilding(tmp_path / "a.tsv", output=tmp_path / "x.tree", layout="kind:u8,place:u16")
    build_tree(asked, Failures(printed=False))
    for ending in ("", ".layout"):
        server.add(NAME + ending, (tmp_path / f"x.tree{ending}").read_bytes())
    assert main(["prefix-index", "search", server.url + NAME, "http*"]) == 0
    assert capfd.readouterr().out == "http://a.com/\t1\t2\n"
    assert len(server.ranges(f"{NAME}.layout")) == 1


def test_a_refused_layout_is_none(url: str, server: RangeServer) -> None:
    """As buckets answer for a file that does not exist."""
    server.add(f"{NAME}.layout", b"").statuses = [403]
    assert found(url, "*.host17.com") == wanted(b"com,host17)")
    assert len(server.ranges(f"{NAME}.layout")) == 1


def test_an_error_that_a_refused_layout_may_explain_says_so(
    tmp_path: Path, server: RangeServer, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.tsv").write_bytes(b"".join(b"http://%d.com/\t1 2\n" % number for number in range(10, 99)))
    asked = TreeBuilding(tmp_path / "a.tsv", output=tmp_path / "x.tree", layout="kind:u8,place:u16")
    build_tree(asked, Failures(printed=False))
    server.add(NAME, (tmp_path / "x.tree").read_bytes())
    server.add(f"{NAME}.layout", b"").statuses = [403] * 9
    assert main(["prefix-index", "search", server.url + NAME, "*.com"]) == 1
    told = (
        f"--layout ({server.url}{NAME}.layout cannot be read (403 Forbidden), so it was taken as missing)\n"
    )
    assert capfd.readouterr().err.endswith(told)


def test_refused_names_of_archives_may_be_missing(url: str, server: RangeServer) -> None:
    server.files[f"{NAME}.archives.gz"].statuses = [403]
    with pytest.raises(
        RefusedError, match=r"archives\.gz.* cannot be read \(403 Forbidden\); .*and that it exists"
    ):
        found(url, "*.com")


def test_a_bucket_that_may_not_be_listed_has_no_layout(
    tmp_path: Path, moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There S3 answers 403, not 404, for what does not exist."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="hidden")
    build(tmp_path, "s3://hidden/x.tree")
    head = s3._head

    def unlisted(url: str, target: dict[str, str]) -> dict[str, object]:
        try:
            return head(url, target)
        except AbsentError:
            raise RefusedError(url, "cannot be read (403 Forbidden)", "check the access rights") from None

    monkeypatch.setattr(s3, "_head", unlisted)
    assert found("s3://hidden/x.tree", "*.host17.com") == wanted(b"com,host17)")


def test_a_local_layout_that_may_not_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, str(tmp_path / "x.tree"))
    (tmp_path / "x.tree.layout").touch()
    really_open = os.open

    def refused(path: str, *how: int) -> int:  # root may read all files
        if os.fspath(path).endswith(".layout"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return really_open(path, *how)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(RefusedError):
        found(str(tmp_path / "x.tree"), "*.com")
