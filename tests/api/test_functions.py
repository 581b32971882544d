"""The public functions: what the command does, as values; failures are returned and nothing is printed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill import Failure, InputError, UsageError

from ..conftest import RunCdxmill


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
    found = list(cdxmill.lookup(tmp_path / "C", "*.iana.org", filter=["!=status:200"], to="20140126200706"))
    assert [capture["urlkey"].encode() for capture in found] == [
        line.split()[0] for line in done.stdout.splitlines()
    ]


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
        (lambda: cdxmill.build("a.warc", output="x"), "number of shards"),
        (lambda: cdxmill.zipnum("a.cdxj", output="x", shards=0), "number of shards"),
        (lambda: cdxmill.zipnum("a.cdxj", output="x", shards=1, compressor="lz4"), "invalid compressor"),
        (lambda: cdxmill.get("C"), "either a URL or an offset"),
        (lambda: next(cdxmill.lookup("absent", "http://a.com/")), "not a ZipNum cluster"),
        (lambda: cdxmill.urlkey("http://a.com:port/"), "invalid URL"),
    ],
)
def test_invalid_arguments_are_a_usage_error_in_one_line(call: object, text: str, tmp_path: Path) -> None:
    assert callable(call)
    with pytest.raises(UsageError, match=text) as raised:
        call()
    assert "\n" not in str(raised.value)
