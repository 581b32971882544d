"""`cdxmill count` of records of which it has, or needs, only a part."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from tests.commands.test_count import INFO, page, record, rows, text


def test_a_page_of_which_a_part_is_missing_is_counted_and_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    link = b"<a href=http://b.org/>"
    large = link + b"." * (32 << 20) + link
    for number, body in enumerate((gzip.compress(link + b"</a>")[:-9], gzip.compress(large, 1))):
        archive = tmp_path / f"{number}.warc.gz"
        archive.write_bytes(INFO + record("response", head + body))
        for what, item in (("links", b"com.example org.b"), ("tags", b"a")):
            assert main(["count", what, "-o", str(tmp_path / f"{what}{number}"), str(archive)]) == 0
            assert (tmp_path / f"{what}{number}").read_bytes() == item + b"\t1\n"
            reason = ("the payload is truncated", "the page is larger than 32 MiB")[number]
            assert f"{archive}@{len(INFO)}: note: {reason}" in capsys.readouterr().err


def test_only_texts_need_all_of_a_very_large_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A video costs the archive nothing, and a page is used as far as the rule for pages says."""
    for kind, notes in (("video/mp4", 0), ("text/html", 1)):
        head = f"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: {kind}\r\n\r\n<p>".encode()
        archive = tmp_path / "a.warc.gz"
        archive.write_bytes(INFO + page("<p>") + record("response", head + b" " * (65 << 20)))
        for what, expected in (("tags", {"p": 1 + notes}), ("servers", {"nginx": 2})):
            assert main(["count", what, "-q", "--replace", "-o", str(tmp_path / "out"), str(archive)]) == 0
            assert rows(tmp_path / "out") == expected
            assert capsys.readouterr().err.count("larger than 32 MiB") == (notes if what == "tags" else 0)
    (tmp_path / "a.warc.wet.gz").write_bytes(text("a " * (33 << 20)))
    assert (
        main(
            [
                "count",
                "words",
                "-q",
                "--replace",
                "-o",
                str(tmp_path / "out"),
                str(tmp_path / "a.warc.wet.gz"),
            ]
        )
        == 1
    )
    assert "only the first 64 MiB are counted" in capsys.readouterr().err
