"""A command that needs a library which is not installed says how to get it, before it reads or writes anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.reporting.parts import public_suffixes


@pytest.mark.parametrize(
    ("missing", "words", "extra"),
    [
        ("pyarrow", "scan absent.warc.gz --to parquet -o out", "parquet"),
        ("pyarrow", "export absent --to parquet -o out", "parquet"),
        ("publicsuffixlist", "export absent --to parquet -o out", "parquet"),
        ("publicsuffixlist", "report absent --html out.html", "report"),
        ("datasketches", "report absent --html out.html", "report"),
        ("uvicorn", "cdx-server absent", "server"),
        ("pyspark", "count absent.warc.gz --engine spark -o out", "spark"),
    ],
)
def test_what_to_install_is_said_first(
    missing: str,
    words: str,
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "cdxmill.server.start", raising=False)
    public_suffixes.cache_clear()
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert f"pip install './cdxmill[{extra}]'" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_lines_and_texts_need_no_library(
    tmp_path: Path, pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scan writes JSON, and export CSV, without pyarrow."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    Path("i.cdxj").write_bytes(b'com,example)/ 20200101000000 {"url": "http://example.com/"}\n')
    assert main(["scan", "-q", "-p", "1", str(pywb_warcs / "example.warc.gz"), "-o", "out"]) == 0
    assert main(["export", "-q", "i.cdxj", "--to", "csv", "-o", "out.csv"]) == 0
