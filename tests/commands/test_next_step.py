"""The command that is printed after a cluster or index was made: it can be typed as it is."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from cdxmill.cli.main import main

from ..material.cdx_files import write_plain

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
