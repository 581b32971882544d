"""The public functions: what the command does, as values; failures are returned and nothing is printed."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cdxmill
from cdxmill import Failure, InputError, UsageError

from ..conftest import RunCdxmill
from ..material.clusters import shards_of, write_raw_cluster
from ..storage.conftest import server
from ..storage.range_server import RangeServer

__all__ = ["server"]


@pytest.fixture
def cut(pywb_warcs: Path, tmp_path: Path) -> Path:
    """A truncated archive."""
    data = (pywb_warcs / "iana.warc.gz").read_bytes()
    path = tmp_path / "cut.warc.gz"
    path.write_bytes(data[: len(data) // 2])
    return path


def test_a_build_has_the_bytes_of_the_command(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    warcs = pywb_warcs / "iana.warc.gz"
    assert run_cdxmill("build", "-q", "-o", tmp_path / "command", "-s", "3", warcs).returncode == 0
    result = cdxmill.build(warcs, output=tmp_path / "api", shards=3, processes=1)
    names = ["cluster.json", "cluster.idx", "splits.txt", *(f"cdx-0000{number}.gz" for number in range(3))]
    assert result.failures == []
    for name in names:
        assert (tmp_path / "api" / name).read_bytes() == (tmp_path / "command" / name).read_bytes()


def test_lookups_are_those_of_the_command(pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=2, numlines=10)
    done = run_cdxmill(
        "lookup", tmp_path / "C", "*.iana.org", "--filter", "!=status:200", "--to", "20140126200706"
    )
    with cdxmill.Cluster(tmp_path / "C") as cluster:
        lists = list(cluster.lines("*.iana.org", filter="!=status:200", to="20140126200706"))
        assert [line for lines in lists for line in lines] == done.stdout.splitlines()
        assert cluster.count("*.iana.org", filter="!=status:200", to="20140126200706") == sum(map(len, lists))
    both = f"{tmp_path}/C,{tmp_path}/C"
    assert list(cdxmill.lookup(both, "*.iana.org")) == list(cdxmill.lookup(tmp_path / "C", "*.iana.org"))
    found = list(
        cdxmill.lookup(tmp_path / "C", "*.iana.org", filter=iter(["!=status:200"]), to="20140126200706")
    )
    assert [capture["urlkey"].encode() for capture in found] == [
        line.split()[0] for line in done.stdout.splitlines()
    ]


def test_the_list_of_failures_of_a_copy_says_how_many_it_leaves_out(
    pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdxmill.running.failures.KEPT", 3)
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=2)
    cdxmill.copy(tmp_path / "C", "*.iana.org", output=tmp_path / "out", archives=tmp_path)
    rows = (tmp_path / "out/copy-failures.tsv").read_text().splitlines()
    assert len(rows) == 4
    assert rows[-1].startswith("\t\t") and " more failures" in rows[-1]


def test_failures_are_returned_and_not_printed(
    cut: Path, pywb_warcs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = cdxmill.index([cut, pywb_warcs / "iana.warc.gz"], output=tmp_path / "cdx")
    (failure,) = result.failures
    assert failure.path == str(cut)
    assert failure.offset is not None
    assert "truncated" in failure.reason
    assert result.archives == 2
    assert result.captures > 171
    assert capfd.readouterr() == ("", "")


def test_captures_of_a_truncated_archive_end_with_an_error_or_a_call(cut: Path) -> None:
    found = []
    with pytest.raises(InputError, match="truncated"):
        for capture in cdxmill.captures(cut):
            found.append(capture)  # noqa: PERF402
    failures: list[Failure] = []
    assert list(cdxmill.captures(cut, on_failure=failures.append)) == found
    assert len(found) > 10
    assert [failure.path for failure in failures] == [str(cut)]


def test_a_damaged_cluster_is_in_the_failures_of_verify(pywb_warcs: Path, tmp_path: Path) -> None:
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=2)
    shard = tmp_path / "C/cdx-00001.gz"
    shard.write_bytes(shard.read_bytes()[:-9])
    assert any(failure.path == str(shard) for failure in cdxmill.verify(tmp_path / "C").failures)


def test_the_record_of_a_revisit_has_the_payload_of_its_original(pywb_warcs: Path, tmp_path: Path) -> None:
    names = ["example-url-agnostic-orig.warc.gz", "example-url-agnostic-revisit.warc.gz"]
    for name in names:
        shutil.copy(pywb_warcs / name, tmp_path)
    cdxmill.build([tmp_path / name for name in names], output=tmp_path / "C", shards=1)
    (revisit,) = cdxmill.lookup(tmp_path / "C", "*.com", filter="mime:revisit", limit=1)
    record = cdxmill.get(tmp_path / "C", revisit["url"], revisit["timestamp"], archives=tmp_path)
    assert record.headers["warc-type"] == "revisit"
    assert b"<html" in record.payload.lower()


def test_get_by_offset_is_get_by_url(pywb_warcs: Path, tmp_path: Path) -> None:
    archive = pywb_warcs / "iana.warc.gz"
    cdxmill.build(archive, output=tmp_path / "C", shards=1)
    by_url = cdxmill.get(tmp_path / "C", "http://www.iana.org/about", archives=pywb_warcs)
    by_offset = cdxmill.get(archive, offset=by_url.offset)
    assert (by_offset.url, by_offset.timestamp) == (by_url.url, by_url.timestamp)
    assert (by_offset.http_head, by_offset.payload) == (by_url.http_head, by_url.payload)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cdxmill.index(output="x"), "no input"),
        (lambda: cdxmill.index("a.warc", output="x", line_format="cdx7"), "invalid line_format"),
        (lambda: cdxmill.index("a.warc", output="x", records="page"), "invalid record type"),
        (
            lambda: cdxmill.index("a.warc", output="x", minimal=True, post_append=True),
            "cannot be used together",
        ),
        (lambda: cdxmill.zipnum("a.cdxj", output="x", shards=0), "at least 1"),
        (lambda: cdxmill.zipnum("a.cdxj", output="x", shards=1, compressor="lz4"), "invalid compressor"),
        (lambda: cdxmill.get("C"), "either a URL or an offset"),
        (lambda: next(cdxmill.lookup("absent", "http://a.com/")), "not a ZipNum cluster"),
        (lambda: cdxmill.urlkey("http://a.com:port/"), "invalid URL"),
        (lambda: cdxmill.index([], output="x"), "no input"),
        (lambda: cdxmill.index("a.warc", output="x", root="d"), "root needs manifest"),
        (
            lambda: cdxmill.index("a.warc", output="x", processes=-1),
            "invalid processes -1: expected at least 0",
        ),
        (lambda: cdxmill.zipnum([], output="x", shards=1), "no input"),
        (lambda: cdxmill.zipnum("a.cdxj", output="s3://bucket/C", shards=1), "not a local directory"),
        (lambda: cdxmill.build("a.warc", output="s3://bucket/C", shards=1), "not a local directory"),
        (lambda: cdxmill.sample("a.cdxj", shards=0), "at least 1"),
        (lambda: cdxmill.verify("C", against=[]), "no input"),
        (lambda: cdxmill.verify("C", sample=0), "at least 1"),
        (lambda: cdxmill.verify("C", convert=True), "convert needs against"),
        (lambda: cdxmill.get("a.warc", "http://a.com/", length=3), "length needs offset"),
        (lambda: cdxmill.lookup("C", "http://a.com/", limit=0), "invalid limit"),
        (
            lambda: cdxmill.lookup("C", "http://a.com/", page=0, page_size=0),
            "invalid page_size 0: expected at least 1",
        ),
        (lambda: cdxmill.lookup("C", "http://a.com/", sort="up"), "invalid sort"),
        (lambda: cdxmill.lookup_many("C", "http://a.com/"), "several URLs"),
    ],
)
def test_invalid_arguments_are_a_usage_error_in_one_line(call: object, text: str, tmp_path: Path) -> None:
    assert callable(call)
    with pytest.raises(UsageError, match=text) as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cdxmill.lookup("C", "http://a.com/", fitler="=status:200"),  # type: ignore[call-arg]
        lambda: cdxmill.lookup_many("C", [], lmit=1),  # type: ignore[call-arg]
        lambda: cdxmill.index("a.warc", output="x", record="all"),  # type: ignore[call-arg]
        lambda: cdxmill.captures("a.warc", record="all"),  # type: ignore[call-arg]
        lambda: cdxmill.zipnum("a.cdxj", output="x", shards=1, numline=3),  # type: ignore[call-arg]
        lambda: cdxmill.build("a.warc", output="x", shards=1, numline=3),  # type: ignore[call-arg]
    ],
)
def test_a_misspelt_argument_is_a_type_error(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        call()


@pytest.fixture
def corrupt(pywb_warcs: Path, tmp_path: Path) -> Path:
    """A cluster with a corrupt block."""
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=1, numlines=50)
    shard = tmp_path / "C/cdx-00000.gz"
    data = bytearray(shard.read_bytes())
    data[100:120] = bytes(20)
    shard.write_bytes(data)
    return tmp_path / "C"


@pytest.mark.parametrize("function", ["lookup", "lookup_many", "lines", "count"])
def test_a_corrupt_cluster_is_an_input_error(function: str, corrupt: Path) -> None:
    calls: dict[str, Callable[[], object]] = {
        "lookup": lambda: list(cdxmill.lookup(corrupt, "*.iana.org")),
        "lookup_many": lambda: list(cdxmill.lookup_many(corrupt, ["*.iana.org"])),
        "lines": lambda: list(cdxmill.Cluster(corrupt).lines("*.iana.org")),
        "count": lambda: cdxmill.Cluster(corrupt).count("*.iana.org"),
    }
    with pytest.raises(InputError, match="corrupt"):
        calls[function]()


def test_an_unusable_call_leaves_the_finished_cluster_as_it_is(pywb_warcs: Path, tmp_path: Path) -> None:
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=1)
    before = {path.name: path.read_bytes() for path in (tmp_path / "C").glob("*") if path.is_file()}
    for inputs, lines in (([], 3000), (str(tmp_path / "C/cdx"), 0)):
        with pytest.raises(UsageError):
            cdxmill.zipnum(inputs, output=tmp_path / "C", shards=1, numlines=lines)
    assert {path.name: path.read_bytes() for path in (tmp_path / "C").glob("*") if path.is_file()} == before


def test_threads_may_share_a_cluster(pywb_warcs: Path, tmp_path: Path) -> None:
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=3, numlines=40)
    urls = [capture["url"] for capture in cdxmill.captures(pywb_warcs / "iana.warc.gz")]
    with cdxmill.Cluster(tmp_path / "C") as cluster, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda url: list(cluster.lookup(url)), urls * 5))
        alone = [list(cluster.lookup(url)) for url in urls]
    assert answers == alone * 5
    assert all(alone)


def test_a_closed_cluster_answers_no_more(pywb_warcs: Path, tmp_path: Path) -> None:
    cdxmill.build(pywb_warcs / "iana.warc.gz", output=tmp_path / "C", shards=1, numlines=10)
    with cdxmill.Cluster(tmp_path / "C") as cluster:
        started = cluster.lines("*.iana.org")
        next(started)
        later = cluster.lookup("*.iana.org")
    for answer in (started, later):
        with pytest.raises(UsageError, match="was closed"):
            list(answer)


def test_the_garbage_collector_is_left_as_it_was(pywb_warcs: Path, tmp_path: Path) -> None:
    cdxmill.index(pywb_warcs / "iana.warc.gz", output=tmp_path / "cdx", processes=1)
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("broken", [b"{", b'{"url": %b}' % (b"[" * 5000), b"x y"])
def test_a_line_that_cannot_be_parsed_is_an_input_error(broken: bytes, tmp_path: Path) -> None:
    sound = b'com,a)/ 2020 {"url": "u"}'
    directory = write_raw_cluster(tmp_path / "C", [sound, b"com,a)/ 2021 " + broken])
    found = cdxmill.lookup(directory, "a.com")
    assert next(found)["url"] == "u"
    with pytest.raises(InputError):
        next(found)
    with pytest.raises(InputError):
        list(cdxmill.lookup_many(directory, ["a.com"]))
    with cdxmill.Cluster(directory) as cluster, pytest.raises(InputError):
        list(cluster.lookup("a.com"))


def test_an_open_cluster_gets_the_records_that_the_function_gets(pywb_warcs: Path, tmp_path: Path) -> None:
    names = ["iana.warc.gz", "example-url-agnostic-orig.warc.gz", "example-url-agnostic-revisit.warc.gz"]
    cdxmill.build([pywb_warcs / name for name in names], output=tmp_path / "C", shards=2, numlines=40)
    found = list(cdxmill.lookup(tmp_path / "C", "*"))
    keys = [(capture["url"], capture["timestamp"]) for capture in found[::8]]
    keys += [(capture["url"], capture["timestamp"]) for capture in found if "revisit" in capture["mime"]][:9]
    places = [None, pywb_warcs]
    for archives in places:
        with cdxmill.Cluster(tmp_path / "C", archives=archives) as cluster, ThreadPoolExecutor(4) as pool:
            records = list(pool.map(lambda key: cluster.get(*key), keys))
            assert records[0] == cluster.get(keys[0][0], keys[0][1])
            assert cluster.get(keys[0][0], decode=False).headers == records[0].headers
        assert records == [cdxmill.get(tmp_path / "C", *key, archives=archives) for key in keys]
    assert {record.headers["warc-type"] for record in records} >= {"response", "revisit"}
    with pytest.raises(UsageError, match="was closed"):
        cluster.get(*keys[0])
    with cdxmill.Cluster(tmp_path / "C") as cluster, pytest.raises(InputError, match="has no capture"):
        cluster.get("http://absent.example/")


def test_get_from_several_clusters_is_get_from_one(
    pywb_warcs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("example", "iana"):
        cdxmill.build(pywb_warcs / f"{name}.warc.gz", output=tmp_path / name, shards=1)
    both = f"{tmp_path}/example,{tmp_path}/iana"
    for url, name in (("http://www.iana.org/", "iana"), ("http://example.com?example=1", "example")):
        assert cdxmill.get(both, url) == cdxmill.get(tmp_path / name, url)
    assert capfd.readouterr() == ("", "")


def test_all_lines_of_a_cluster_are_an_iterator(
    pywb_warcs: Path, tmp_path: Path, server: RangeServer
) -> None:
    archives = [pywb_warcs / "iana.warc.gz", pywb_warcs / "example.warc.gz"]
    cdxmill.build(archives, output=tmp_path / "C", shards=3, numlines=20)
    lines = b"".join(shards_of(tmp_path / "C")).splitlines()
    for path in (tmp_path / "C").iterdir():
        if path.is_file():
            server.add(f"/C/{path.name}", path.read_bytes())
    for place in (tmp_path / "C", f"{server.url}/C"):
        with cdxmill.Cluster(place) as cluster:
            lists = cluster.lines("*")
            assert not isinstance(lists, list)
            assert [line for found in lists for line in found] == lines
            assert cluster.count("*") == len(lines)
        assert [capture["urlkey"].encode() for capture in cdxmill.lookup(place, "*")] == [
            line.split(b" ")[0] for line in lines
        ]
    both = f"{tmp_path}/C,{server.url}/C"
    assert len(list(cdxmill.lookup(both, "*"))) == len(lines)
