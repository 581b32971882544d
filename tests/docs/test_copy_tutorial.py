"""The tutorial about the captures of some domains: its commands, with a stand-in for Common Crawl, and their requests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ..material.crawls import make_crawls, serve_crawls
from ..storage.range_server import RangeServer, serving
from .pages import DOCS, examples, marked, run_examples, shows

PAGE = DOCS / "tutorials/domains.md"


def check_requests_of_the_index(server: RangeServer) -> None:
    """Compare the requests so far, and their bytes, with those on the page."""
    ranges = [(span or "").removeprefix("bytes=").split("-") for _, _, span in server.seen]
    size = sum(int(last) + 1 - int(first) for first, last in ranges)
    assert f"sent {len(ranges)} requests and read {size / 1000:.0f} KB" in PAGE.read_text()
    lists = [path for _, path, _ in server.seen if path == "/collinfo.json"]
    assert (
        f"{len(lists)} for\nthe list of crawls, and {(len(ranges) - len(lists)) // 2} per crawl"
        in PAGE.read_text()
    )


def test_the_commands_of_the_tutorial_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [example for text in marked(PAGE, "text crawls") for example in examples(text)]
    assert len(shown) > 8
    (tmp_path / "crawls").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "first").mkdir()
    with serving() as server:
        serve_crawls(server, make_crawls(tmp_path / "crawls"))
        monkeypatch.setenv("CDXMILL_COMMONCRAWL", server.url)
        monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
        printed = run_examples([shown[0].command], tmp_path / "first")
        check_requests_of_the_index(server)
        printed += run_examples([example.command for example in shown[1:]], tmp_path / "here")
    wrong = [
        f"$ {example.command}\n--- the page shows\n{example.output}--- printed is\n{output}"
        for example, output in zip(shown, printed, strict=True)
        if not shows(example.output, output)
    ]
    assert not wrong, "\n".join(wrong)
    fetched = Counter(path for _, path, _ in server.seen if path.endswith(".warc.gz"))
    assert sum(fetched.values()) == 6 + 1  # those of the copy, and one for a capture with its related records
