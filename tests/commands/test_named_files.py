"""Files that options name: one that is not there is wrong usage, a disk that fails is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main

from ..material.failing_disk import fail_reads

LINE = (
    'com,a)/ 20200101000000 {"url": "http://a.com/", "offset": "0", "length": "5", "filename": "a.warc.gz"}\n'
)
COMMANDS = [
    ["zipnum", "-s", "2", "--splits", "named.txt", "-o", "c", "a.cdxj"],
    ["recompress", "--dictionary", "named.txt", "-o", "out", "a.warc.gz"],
    ["scan", "--where", "host@named.txt", "-o", "out", "a.warc.gz"],
    ["copy", "--archives", "named.txt", "-o", "out", "a.cdxj"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_disk_that_fails_is_no_wrong_usage(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pywb_warcs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    Path("a.cdxj").write_text(LINE)
    assert main([*words, "-p", "1"]) == 2
    assert "named.txt" in capsys.readouterr().err
    Path("named.txt").write_text("com,a)/\ta.warc.gz\n")
    with monkeypatch.context() as patch:
        fail_reads(patch, "named.txt")
        assert main([*words, "-p", "1"]) == 3
    assert "named.txt: cannot be read (Input/output error)" in capsys.readouterr().err
