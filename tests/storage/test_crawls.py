"""Crawls of Common Crawl by name, over HTTP: `lookup`, `get` and `copy`, with every request counted."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.storage import patience

from ..material.crawls import CRAWLS, DATES, HOSTS, PAGES, make_crawls, serve_crawls
from .range_server import RangeServer, serving

Run = Callable[..., tuple[int, bytes, str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return make_crawls(tmp_path_factory.mktemp("crawls"))


@pytest.fixture
def web(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RangeServer]:
    """The stand-in on loopback."""
    with serving() as server:
        serve_crawls(server, files)
        monkeypatch.setenv("CDXMILL_COMMONCRAWL", server.url)
        monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
        monkeypatch.setattr(patience, "LONGEST_WAIT", 0.01)
        monkeypatch.setattr(patience, "READ_SECONDS", 0.3)
        yield server


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    def call(*arguments: str | Path) -> tuple[int, bytes, str]:
        capfdbinary.readouterr()
        status = main([str(one) for one in arguments])
        stdout, stderr = capfdbinary.readouterr()
        return status, stdout, stderr.decode()

    return call


def rows_of(stdout: bytes) -> list[dict[str, str]]:
    return [json.loads(line.split(b" ", 2)[2]) for line in stdout.splitlines()]


def payloads(directory: Path) -> list[str]:
    """What the records of a copy contain, without the first record of each file."""
    data = b"".join(gzip.decompress(path.read_bytes()) for path in sorted(directory.glob("*.warc.gz")))
    return sorted(part.split(b"\r\n")[0].decode() for part in data.split(b"<p>")[1:])


def test_a_crawl_is_named_and_its_lines_say_so(web: RangeServer, run: Run) -> None:
    status, stdout, stderr = run("lookup", "CC-MAIN-2024-22", "*.example.com")
    assert (status, stderr) == (0, "")
    rows = rows_of(stdout)
    assert len(rows) == 2 * PAGES
    assert {row["crawl"] for row in rows} == {"CC-MAIN-2024-22"}
    assert not web.ranges("/collinfo.json")
    assert run("lookup", "CC-MAIN-2024-22", "*.example.com", "--count")[1] == b"12\n"


def test_a_crawl_is_exported_as_its_index_is(web: RangeServer, run: Run, tmp_path: Path) -> None:
    """In several files: its keys are cut at blocks."""
    place = f"{web.url}/cc-index/collections/CC-MAIN-2024-22/indexes"
    for name, cluster in (("crawl", "CC-MAIN-2024-22"), ("index", place)):
        call = ("export", "-q", "--to", "parquet", "--file-lines", "1000", "-o", tmp_path / name, cluster)
        assert run(*call, "*.example.com") == (0, b"", "")
    crawl, index = (
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("*.parquet")}
        for name in ("crawl", "index")
    )
    assert len(crawl) > 1
    assert crawl == index


def test_the_lines_of_crawls_by_a_pattern_are_exported(web: RangeServer, run: Run) -> None:
    status, stdout, _ = run("export", "-q", "--to", "cdxj", "-o", "-", "CC-MAIN-2024-*", "*.example.com")
    assert status == 0
    crawls = Counter(row["crawl"] for row in rows_of(stdout))
    assert crawls == {"CC-MAIN-2024-22": 2 * PAGES, "CC-MAIN-2024-10": 2 * PAGES}


def test_several_crawls_are_searched_at_once_in_one_order(web: RangeServer, run: Run) -> None:
    status, stdout, _ = run("lookup", "CC-MAIN-2023-50,CC-MAIN-2024-*", "*.example.com")
    assert status == 0
    lines = [line.split(b', "crawl"')[0] for line in stdout.splitlines()]
    assert lines == sorted(lines)
    assert Counter(row["crawl"] for row in rows_of(stdout)) == dict.fromkeys(CRAWLS, 2 * PAGES)
    status, stdout, _ = run(
        "lookup", "CC-MAIN-*", "http://example.com/1", "--fl", "timestamp,crawl", "--output", "csv"
    )
    dates = sorted((date.replace("-", "") + "010203", name) for name, date in DATES.items())
    assert stdout.decode().splitlines() == ["timestamp,crawl", *(",".join(one) for one in dates)]
    status, stdout, _ = run("lookup", "CC-MAIN-*", "example.com/*", "--sort", "reverse", "--limit", "2")
    assert [row["crawl"] for row in rows_of(stdout)] == ["CC-MAIN-2024-22", "CC-MAIN-2024-10"]
    assert run("lookup", "CC-MAIN-*", "http://example.com/1", "--count")[1] == b"3\n"
    assert (
        json.loads(run("lookup", "CC-MAIN-*", "http://example.com/1", "--show-num-pages")[1])["blocks"] == 3
    )
    _, stdout, _ = run(
        "lookup", "CC-MAIN-*", "*", "--filter", "=crawl:CC-MAIN-2024-10", "--collapse", "crawl"
    )
    assert [row["crawl"] for row in rows_of(stdout)] == ["CC-MAIN-2024-10"]


def test_a_tree_beside_a_crawl_may_be_asked_for_the_crawl(web: RangeServer, run: Run, tmp_path: Path) -> None:
    """A tree stores no crawl: its lines have none."""
    line = b'com,example)/1 2020 {"url": "http://example.com/1", "length": "7", "offset": "5", "filename": "a.gz"}\n'
    (tmp_path / "a.cdxj").write_bytes(line)
    tree = tmp_path / "t"
    assert run("prefix-index", "build", "-q", "-o", tree, tmp_path / "a.cdxj")[0] == 0
    asked = ("lookup", f"CC-MAIN-2024-10,{tree}", "http://example.com/1", "--filter")
    for given, crawls in (
        ("=crawl:CC-MAIN-2024-10", ["CC-MAIN-2024-10"]),
        ("!=crawl:CC-MAIN-2024-10", [None]),
    ):
        status, stdout, stderr = run(*asked, given)
        assert (status, stderr, [row.get("crawl") for row in rows_of(stdout)]) == (0, "", crawls)


def test_the_list_of_crawls_is_fetched_once_a_day(web: RangeServer, run: Run) -> None:
    for _ in range(2):
        assert run("lookup", "CC-MAIN-2024-*", "http://example.com/1")[0] == 0
    first = len(web.ranges("/collinfo.json"))
    assert 0 < first <= 2
    assert run("lookup", "CC-MAIN-2023-*", "http://example.com/1")[0] == 0
    assert len(web.ranges("/collinfo.json")) == first


def test_an_unknown_crawl_is_an_error(web: RangeServer, run: Run) -> None:
    status, _, stderr = run("lookup", "CC-MAIN-1999-*", "http://example.com/")
    assert status == 2
    assert "CC-MAIN-1999-*: no such crawl in " in stderr
    assert "the newest are CC-MAIN-2024-22, CC-MAIN-2024-10, CC-MAIN-2023-50" in stderr
    status, _, stderr = run("lookup", "CC-MAIN-1999-01", "http://example.com/")
    assert status == 2
    assert stderr == (
        f"cdxmill: CC-MAIN-1999-01: no such crawl ({web.url}/cc-index/collections/CC-MAIN-1999-01/indexes does not exist);"
        f" {web.url}/collinfo.json has all names\n"
    )
    for words in (["get"], ["lookup"]):
        assert run(*words, "CC-MAIN-1999-01,CC-MAIN-2024-22", "http://example.com/")[::2] == (2, stderr)


def test_get_finds_the_archives_of_a_crawl(web: RangeServer, run: Run) -> None:
    status, stdout, stderr = run("get", "CC-MAIN-*", "http://example.com/1", "--payload")
    assert (status, stdout) == (
        0,
        b"<p>http://example.com/1 of 2024-05-17" + b"." * (len("http://example.com/1") % 7) * 100,
    )
    assert stderr == "CC-MAIN-2024-22: http://example.com/1 20240517010203\n"
    _, stdout, stderr = run("get", "CC-MAIN-*", "http://example.com/1", "20231101", "--payload")
    assert stdout.startswith(b"<p>http://example.com/1 of 2023-12-01")


def test_a_copy_of_crawls_takes_one_request_per_archive(web: RangeServer, run: Run, tmp_path: Path) -> None:
    web.seen.clear()
    status, _, stderr = run("copy", "-p", "1", "-o", tmp_path / "out", "CC-MAIN-2024-*", "*.example.com")
    assert status == 0
    archives = [path for _, path, _ in web.seen if path.endswith(".warc.gz")]
    assert Counter(archives) == {
        f"/crawl-data/{name}/segments/1/warc/{host}.warc.gz": 1 for name in CRAWLS[:2] for host in HOSTS[:2]
    }
    assert f"{4 * PAGES} captures" in stderr
    assert "; 4 requests, " in stderr
    wanted = [
        f"http://{host}/{page} of {DATES[name]}"
        for name in CRAWLS[:2]
        for host in HOSTS[:2]
        for page in range(PAGES)
    ]
    assert [one.rstrip(".") for one in payloads(tmp_path / "out")] == sorted(wanted)
    web.seen.clear()
    status, _, stderr = run("copy", "-o", tmp_path / "out", "CC-MAIN-2024-*", "*.example.com")
    assert (status, "24 captures already there; 0 requests" in stderr) == (0, True)
    assert not [path for _, path, _ in web.seen if path.endswith(".warc.gz")]


def test_lines_of_lookup_know_their_crawl(web: RangeServer, run: Run, tmp_path: Path) -> None:
    _, lines, _ = run("lookup", "CC-MAIN-2024-*", "*.example.com")
    (tmp_path / "found.cdxj").write_bytes(lines)
    status, _, _ = run("copy", "-o", tmp_path / "out", tmp_path / "found.cdxj")
    assert (status, len(payloads(tmp_path / "out"))) == (0, 4 * PAGES)
    status, _, stderr = run("copy", "-o", tmp_path / "x", "--archives", tmp_path, tmp_path / "found.cdxj")
    assert (status, "0 captures" in stderr) == (1, True)  # the user says where they are
    run("copy", "-q", "-o", tmp_path / "told", "--source-headers", tmp_path / "found.cdxj", "example.com/1")
    (first,) = [path for path in web.files if path.endswith("2024-22/segments/1/warc/example.com.warc.gz")]
    written = b"".join(map(gzip.decompress, [path.read_bytes() for path in (tmp_path / "told").glob("*.gz")]))
    assert f"WARC-Source-URI: {web.url}{first}\r\nWARC-Source-Range: bytes=".encode() in written


def test_a_busy_server_is_asked_again_and_a_copy_is_complete(
    web: RangeServer, run: Run, tmp_path: Path
) -> None:
    for path, file in web.files.items():
        if path.endswith(".warc.gz"):
            file.statuses, file.retry_after, file.drops, file.cuts = [503, 429, 503], "0", 1, [100]
    status, _, _ = run("copy", "-p", "1", "-o", tmp_path / "out", "CC-MAIN-2024-22", "*.example.com")
    assert (status, len(payloads(tmp_path / "out"))) == (0, 2 * PAGES)


def test_requests_per_second_are_limited(web: RangeServer, run: Run, tmp_path: Path) -> None:
    import time

    start = time.monotonic()
    run("copy", "-q", "-p", "2", "--rate", "10", "-o", tmp_path / "out", "CC-MAIN-*", "*.com", "*.org")
    assert time.monotonic() - start >= 0.8  # nine requests
    assert len(payloads(tmp_path / "out")) == 3 * 3 * PAGES


def test_a_server_without_ranges_is_read_whole_once(web: RangeServer, run: Run, tmp_path: Path) -> None:
    for path, file in web.files.items():
        file.knows_ranges = not path.endswith("/example.com.warc.gz")
    status, _, _ = run("copy", "-p", "1", "-o", tmp_path / "out", "CC-MAIN-2024-22", "*.example.com")
    assert (status, len(payloads(tmp_path / "out"))) == (0, 2 * PAGES)


def test_a_missing_archive_costs_only_its_own_captures(web: RangeServer, run: Run, tmp_path: Path) -> None:
    (path,) = [path for path in web.files if "2024-22" in path and "/blog.example.com" in path]
    served = web.files.pop(path)
    status, _, _ = run("copy", "-o", tmp_path / "out", "CC-MAIN-2024-22", "*.example.com")
    assert (status, len(payloads(tmp_path / "out"))) == (1, PAGES)
    assert len((tmp_path / "out/copy-failures.tsv").read_text().splitlines()) == PAGES
    web.files[path] = served
    status, _, _ = run("copy", "-o", tmp_path / "out", "CC-MAIN-2024-22", "*.example.com")
    assert (status, len(payloads(tmp_path / "out"))) == (0, 2 * PAGES)
    assert not (tmp_path / "out/copy-failures.tsv").exists()


def without_index(web: RangeServer, *names: str) -> None:
    """Take the indexes of crawls from the server."""
    for path in [path for path in web.files if any(f"/{name}/indexes/" in path for name in names)]:
        del web.files[path]


def test_a_crawl_without_an_index_costs_only_its_own_captures(
    web: RangeServer, run: Run, tmp_path: Path
) -> None:
    without_index(web, "CC-MAIN-2024-22")
    reason = "cdxmill: CC-MAIN-2024-22: was not searched (it has no index); the answer is that of the other crawls\n"
    status, stdout, stderr = run("lookup", "CC-MAIN-*", "*.example.com")
    assert (status, stderr) == (1, reason)
    assert Counter(row["crawl"] for row in rows_of(stdout)) == dict.fromkeys(CRAWLS[1:], 2 * PAGES)
    assert run("lookup", "CC-MAIN-*", "*.example.com", "--count") == (1, b"24\n", reason)
    assert run("get", "CC-MAIN-*", "http://example.com/1", "--headers")[0] == 0
    for options in ((), ("--limit", "100"), ("--originals",)):
        out = tmp_path / "-".join(["out", *options])
        status, _, stderr = run("copy", "-q", "-o", out, "CC-MAIN-*", "*.example.com", *options)
        assert (status, stderr.count("CC-MAIN-2024-22: was not searched")) == (1, 1)
        assert Counter(one.rstrip(".")[-10:] for one in payloads(out)) == dict.fromkeys(
            (DATES[name] for name in CRAWLS[1:]), 2 * PAGES
        )
    without_index(web, *CRAWLS)
    assert run("lookup", "CC-MAIN-*", "*.example.com")[:2] == (2, b"")


def test_the_newest_crawls_are_searched(web: RangeServer, run: Run, tmp_path: Path) -> None:
    newest = ("CC-MAIN-*", "--newest-crawls", "2")
    _, stdout, _ = run("lookup", *newest, "http://example.com/1")
    assert sorted(row["crawl"] for row in rows_of(stdout)) == sorted(CRAWLS[:2])
    run("copy", "-q", "-o", tmp_path / "out", *newest, "http://example.com/1")
    assert len(payloads(tmp_path / "out")) == 2
    assert run("get", "CC-MAIN-*", "--newest-crawls", "1", "http://example.com/1", "2023")[0] == 0
    (tmp_path / "a.cdxj").write_bytes(b"com,example)/1 2023 {}\n")
    for words in (["lookup"], ["get"], ["copy", "-o", tmp_path / "x"]):
        for source in (CRAWLS[0], tmp_path / "a.cdxj"):
            status, _, stderr = run(*words, source, "--newest-crawls", "2", "http://example.com/1")
            assert (status, "--newest-crawls needs names of crawls" in stderr) == (2, True), words


def test_the_list_of_crawls(web: RangeServer, run: Run) -> None:
    assert run("crawls") == (0, "".join(f"{name}\t{name}\n" for name in CRAWLS).encode(), "")
    assert run("crawls", "CC-MAIN-2024-*", "--newest-crawls", "1")[1].startswith(CRAWLS[0].encode())
    assert run("crawls", "CC-MAIN-1999-*")[0] == 2


def test_the_size_of_a_query_in_each_crawl(web: RangeServer, run: Run, tmp_path: Path) -> None:
    without_index(web, "CC-MAIN-2024-10")
    left = (CRAWLS[0], CRAWLS[2])
    status, stdout, stderr = run("lookup", "CC-MAIN-*", "*.example.com", "--count", "--by-source")
    assert (status, stderr.count("\n")) == (1, 1)
    assert stdout.decode() == "".join(f"12\t{name}\n" for name in left)
    (tmp_path / "urls.txt").write_text("*.example.com\nother.org/1\n")
    _, stdout, _ = run("lookup", "CC-MAIN-*", "-i", tmp_path / "urls.txt", "--count", "--by-source")
    wanted = [
        f"{size}\t{url}\t{name}" for size, url in ((12, "*.example.com"), (1, "other.org/1")) for name in left
    ]
    assert stdout.decode().splitlines() == wanted
    _, stdout, _ = run("lookup", "CC-MAIN-*", "*.example.com", "--estimate", "--by-source")
    assert [line.partition(b"\t")[2].decode() for line in stdout.splitlines()] == list(left)
    assert run("lookup", "CC-MAIN-*", "*.example.com", "--by-source")[0] == 2


@pytest.mark.parametrize(
    "page", [b"<html>", b"{}x", b'{"id": 1}', b"[1]", b'[{"name": "x"}]', b"7", b"[" * 100_000]
)
def test_a_page_that_is_no_list_of_crawls_is_told(page: bytes, web: RangeServer, run: Run) -> None:
    web.add("/collinfo.json", page)
    status, stdout, stderr = run("lookup", "CC-MAIN-2024-*", "*.example.com")
    assert (status, stdout) == (1, b"")
    assert stderr == (
        f"cdxmill: {web.url}/collinfo.json: is not a list of crawls; check the URL, or name each crawl\n"
    )
