"""The command that is printed after a cluster or index was made: it can be typed as it is."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.clusters import next_step
from cdxmill.commands.clusters.next_step import example_page, next_commands, next_lookup
from cdxmill.errors import UsageError

from ..material.cdx_files import write_gzip, write_plain

LINE = b'com,a)/ 20200101000000 {"url": "%b", "filename": "x", "offset": "0", "length": "1"}'


@pytest.mark.parametrize("lines", [[LINE % b"dns:a.com"], [LINE % b"http:///x"]])
def test_without_a_url_to_look_up_none_is_printed(
    lines: list[bytes], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cdx = write_plain(tmp_path / "a.cdxj", lines)
    assert main(["zipnum", "-s", "1", "-o", str(tmp_path / "C"), str(cdx)]) == 0
    text = capfd.readouterr().err
    assert "next:" not in text
    assert "internal" not in text


@pytest.mark.parametrize(
    ("started", "has_path", "word"),
    [
        ("/a b/cdxmill", False, "/a b/cdxmill"),
        ("/a b/cdxmill", True, "cdxmill"),
        ("/a b/__main__.py", False, "cdxmill"),
        ("/a b/__main__.py", True, "cdxmill"),
    ],
)
def test_the_command_begins_with_a_word_that_starts_cdxmill(
    started: str,
    has_path: bool,
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [started])
    monkeypatch.setenv("PATH", os.fspath(Path(sys.executable).parent) if has_path else os.devnull)
    cdx = write_plain(tmp_path / "a.cdxj", [LINE % b"http://a.com/b"])
    assert main(["zipnum", "-s", "1", "-o", str(tmp_path / "C"), str(cdx)]) == 0
    last = capfd.readouterr().err.splitlines()[-1]
    assert shlex.split(last) == ["next:", word, "lookup", str(tmp_path / "C"), "http://a.com/*"]


def line(url: str, mime: str = "text/html", status: str = "200") -> bytes:
    """A line of a capture. Its key is that of the URL only in order."""
    fields = f'{{"url": "{url}", "mime": "{mime}", "status": "{status}"}}'
    return f"com,a)/{url[-3:]} 20200101000000 {fields}".encode()


LONG, SHORT = line("http://a.com/long/aaa"), line("http://a.com/ccc")


@pytest.mark.parametrize(
    ("lines", "url"),
    [
        ([LONG, SHORT], "http://a.com/ccc"),  # the shortest page
        ([line("http://a.com/aaa", mime="image/png"), LONG], "http://a.com/long/aaa"),
        ([line("http://a.com/aaa", status="404"), LONG], "http://a.com/long/aaa"),
        ([line("dns:aaa"), line("https://a.com/long/bbb")], "https://a.com/long/bbb"),
        ([line("ftp://a.com/aaa")], None),
        # without a page, the first URL of the web
        ([line("http://a.com/long/aaa", status="404"), line("http://a.com/b", "image/png")], "http://a.com/long/aaa"),
        ([line("http://a.com/long/aaa", "image/png"), line("http://a.com/b", status="301")], "http://a.com/long/aaa"),
        ([b"com,a)/ 20200101000000 {}", b'com,b)/ 20200101000000 {"url": 5}'], None),
        ([b"com,a)/ 20200101000000 http://a.com/x text/html 200 AAAA - 0 a.warc.gz"], "http://a.com/x"),
        ([b"com,a)/ 20200101000000 http://a.com/x text/html 200 AAAA - 0 a.warc.gz",
          b"com,b)/ 20200101000000 http://b.com/ text/html 200 AAAA - 0 a.warc.gz"], "http://b.com/"),
    ],
)  # fmt: skip
def test_the_page_to_look_up_is_one_that_people_read(
    lines: list[bytes], url: str | None, tmp_path: Path
) -> None:
    assert example_page(str(write_plain(tmp_path / "a.cdxj", lines))) == url


@pytest.mark.parametrize(("number", "url"), [(3, "http://a.com/ccc"), (2, "http://a.com/long/aaa")])
def test_only_the_first_lines_are_looked_at(
    number: int, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [LONG, line("http://a.com/longer/bbb"), SHORT]
    monkeypatch.setattr(next_step, "_MOST", number)
    assert example_page(str(write_plain(tmp_path / "a.cdxj", lines))) == url


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("http://a.com/x?y#z", "http://a.com"),
        ("HTTPS://a.com", None),  # as a URL is stored that no browser asks for
        ("https://a.com", "https://a.com"),
        ("https://a.com:8080?x", "https://a.com:8080"),
        ("http://a.com#z", "http://a.com"),
        ("http://a b.com/", "http://a"),
        ("http://it\u2019s.com/", "http://it\u2019s.com"),
        ("http:///x", None),
    ],
)
def test_the_site_of_that_page_is_looked_up(
    url: str, site: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["cdxmill"])
    monkeypatch.setenv("PATH", os.fspath(Path(sys.executable).parent))
    cdx = str(write_plain(tmp_path / "it's a.cdxj", [line(url)]))
    lookup, both = next_lookup(cdx), next_commands(cdx)
    if site is None:
        assert (lookup, both) == ("", "")
        return
    assert shlex.split(lookup) == ["next:", "cdxmill", "lookup", cdx, f"{site}/*"]
    first, second = both.splitlines()
    assert (first, shlex.split(second)) == (lookup, ["or:", "cdxmill", "serve", cdx])


DEEP = b'com,a)/ 20200101000000 {"url": ' + b"[" * 100_000 + b"\n"


@pytest.mark.parametrize(
    "content",
    [None, b"\x1f\x8bnot gzip", b'com,a)/ 20200101000000 {"url": \n', DEEP],
    ids=["absent", "gzip", "cut", "deep"],
)
def test_an_index_that_cannot_be_read_is_no_failure_of_what_was_made(
    content: bytes | None, tmp_path: Path
) -> None:
    cdx = tmp_path / "a.cdxj"
    if content is not None:
        cdx.write_bytes(content)
    assert next_commands(str(cdx)) == ""


def test_a_page_of_a_gzip_file_is_found_and_a_directory_without_a_cluster_is_wrong_usage(
    tmp_path: Path,
) -> None:
    assert example_page(str(write_gzip(tmp_path / "a.cdx.gz", [LONG]))) == "http://a.com/long/aaa"
    with pytest.raises(UsageError):
        example_page(str(tmp_path))
    assert next_commands(str(tmp_path)) == ""
