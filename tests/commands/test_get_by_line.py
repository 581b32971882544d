"""`get` finds the capture of each line that cdxmill writes: of all samples, and of lines that are unusual."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import brotli  # type: ignore[import-not-found, import-untyped, unused-ignore]
import pytest

from cdxmill.cli.main import main
from cdxmill.commands.get import fetch_capture, find_capture, get_record
from cdxmill.errors import InputError
from cdxmill.formats.lines.capture_fields import record_location, timestamp_of_line
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.options.records import Getting

from ..material.clusters import shards_of, write_raw_cluster

if TYPE_CHECKING:
    from tests.conftest import BuildCluster


def record(url: str, date: str = "2024-05-17T23:41:22Z", payload: bytes = b"x") -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + payload
    dated = f"WARC-Date: {date}\r\n" if date else ""
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\n{dated}WARC-Target-URI: {url}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode("latin-1") + block + b"\r\n\r\n"


def built(directory: Path, *records: bytes) -> str:
    """The cluster of one plain archive."""
    (directory / "a.warc").write_bytes(b"".join(records))
    assert main(["build", "-q", "-s", "1", "-o", str(directory / "C"), str(directory / "a.warc")]) == 0
    return str(directory / "C")


def cluster_of(directory: Path, *lines: bytes) -> str:
    return write_raw_cluster(directory / "L", sorted(lines))


def test_every_line_of_the_samples_leads_to_its_record(
    build_cluster: BuildCluster, samples: Path, tmp_path: Path
) -> None:
    cluster = build_cluster(tmp_path / "C", [samples], 2, "-q")
    lines = b"".join(shards_of(cluster.directory)).split(b"\n")[:-1]
    assert len(lines) > 4000
    with closing(ArchiveStore(str(samples))) as archives:
        for line in lines:
            location = record_location(line)
            fetch_capture(location, archives)  # raises if the record does not match
            if location.timestamp != "-":
                found = find_capture(str(cluster.directory), location.url, location.timestamp)
                assert found.timestamp == location.timestamp, line


URLS = [
    "http://example.com/\xc3\xa4?b=1&a=2",
    "http://example.com/\xe4?b=1&a=2#top",
    "http://example.com/?q=\xc3\xa4&r=%C3%A4#\xc3\xb6",
    "http://b\xc3\xbccher.example/a b?x=1&y=2",
    "http://example.com/a?b=%&a=\x01",
    "http://example.com/*",
    "http://*.example.com/\xc3\xa4",
    "http://user:\xc3\xa4@example.com/?\xc3\xa4",
]


@pytest.mark.parametrize("url", URLS)
def test_any_url_of_a_record_leads_back_to_it(
    url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = built(tmp_path, record(url))
    (line,) = shards_of(Path(cluster))[0].splitlines()
    stored = json.loads(line.split(b" ", 2)[2])["url"]
    for timestamp in (None, "2020"):
        assert b"".join(get_record(Getting(cluster, stored, timestamp, archives=tmp_path))) == record(url)
    assert main(["verify", "-q", "--archives", str(tmp_path), cluster]) == 0, capfd.readouterr().err


def test_a_capture_without_a_date_is_chosen_only_if_there_is_no_other(tmp_path: Path) -> None:
    undated, dated = record("http://a.com/", "", b"undated"), record("http://a.com/", payload=b"dated")
    cluster = built(tmp_path, undated, dated, record("http://b.com/", "", b"alone"))
    for timestamp in (None, "1999", "20240517234122"):
        for url, payload in (("http://a.com/", b"dated"), ("http://b.com/", b"alone")):
            asked = Getting(cluster, url, timestamp, archives=tmp_path, form="payload")
            assert b"".join(get_record(asked)) == payload


TIMESTAMPS = [
    "-",
    "",
    "unknown",
    "20",
    "2020",
    "20201301000000",
    "00000101000000",
    "2020010203040506070",
    "\u0662",
]


@pytest.mark.parametrize("timestamp", TIMESTAMPS)
def test_timestamps_of_other_tools_are_no_reason_to_stop(
    timestamp: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    odd = f'com,a)/ {timestamp} {{"url": "http://a.com/", "offset": "1", "length": "2", "filename": "odd"}}'.encode()
    good = (
        b'com,a)/ 20210101000000 {"url": "http://a.com/", "offset": "1", "length": "2", "filename": "good"}'
    )
    cluster = cluster_of(tmp_path, odd, good)
    for wanted in ("2021", "20210101000000", None):
        assert find_capture(cluster, "http://a.com/", wanted).filename == "good"
    if timestamp == "-":
        assert find_capture(cluster, "http://a.com/", "-").filename == "odd"
    else:
        with pytest.raises(InputError, match="has no capture"):
            find_capture(cluster, "http://a.com/", "-")
    for options in (["--closest", "2021"], ["--sort", "reverse"], []):
        assert main(["lookup", cluster, "http://a.com/", *options]) == 0
        lines = capfd.readouterr().out.encode().splitlines()
        assert sorted(lines) == sorted([odd, good])
        assert timestamp_of_line(lines[0]) == timestamp_of_line(good) or "--closest" not in options


@pytest.mark.parametrize(
    "location",
    [
        {"offset": "9" * 19},
        {"offset": str(2**63)},
        {"offset": "9" * 5000},
        {"offset": "-1"},
        {"offset": "x"},
        {"offset": "\u0661"},
        {"offset": 1.5},
        {"offset": None},
        {"offset": [[]]},
        {"length": "0"},
        {"length": "-5"},
        {"length": "9" * 30},
        {"filename": ""},
        {"filename": "a\0b"},
        {"filename": "\ud800"},
        {"filename": "x" * 300},
        {"filename": "/"},
        {"offset": str(10**18 - 1), "length": str(10**18 - 1), "filename": "a.warc"},
    ],
)
def test_a_line_with_an_impossible_location_is_an_error_of_its_own(
    location: dict[str, object], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    built(tmp_path, record("http://z.com/"))
    fields = {"url": "http://a.com/", "offset": "0", "length": "9", "filename": "a.warc", **location}
    cluster = cluster_of(tmp_path, b"com,a)/ 20210101000000 " + json.dumps(fields).encode())
    with pytest.raises(InputError):
        b"".join(get_record(Getting(cluster, "http://a.com/", archives=tmp_path)))
    assert main(["get", cluster, "http://a.com/", "--archives", str(tmp_path)]) == 1
    assert main(["verify", "-q", "--archives", str(tmp_path), cluster]) == 1
    assert main(["lookup", cluster, "http://a.com/", "--resolve-revisits", "--output", "text"]) in (0, 1)
    assert "internal error" not in capfd.readouterr().err


@pytest.mark.parametrize("location", ["a\0b", "\xff\xfe", "/absent\0", "x" * 300, "\n", "/"])
def test_locations_of_shards_that_no_file_can_have_are_an_error(
    location: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = cluster_of(tmp_path, b'com,a)/ 20210101000000 {"url": "http://a.com/"}')
    shard = tmp_path / "L" / "cdx-00000.gz"
    shard.rename(tmp_path / "moved")
    (tmp_path / "L" / "cluster.loc").write_bytes(b"cdx-00000.gz\t" + location.encode("latin-1") + b"\n")
    for command in (["lookup", cluster, "a.com"], ["get", cluster, "a.com"], ["verify", "-q", cluster]):
        assert main(command) == 1
        assert "internal error" not in capfd.readouterr().err


def test_a_payload_that_cannot_be_decoded_to_its_end_is_an_error(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n" + brotli.compress(b"text " * 9000)[:-5]
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.com/\r\nContent-Length: %d\r\n\r\n"
    cluster = built(tmp_path, head % len(block) + block + b"\r\n\r\n")
    capfdbinary.readouterr()
    assert main(["get", cluster, "a.com", "--archives", str(tmp_path), "--payload", "--decode"]) == 1
    (line,) = capfdbinary.readouterr().err.splitlines()
    assert line.endswith(b"a.warc@0: the payload is truncated within its compressed data")
    assert main(["get", cluster, "a.com", "--archives", str(tmp_path), "--payload"]) == 0
