"""One file of index lines: its name says which lines are expected, and other ones are refused or noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cli.main import main


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["-o", "a.cdx"], 0, "a.cdx: note: the lines are CDXJ; for CDX lines, use --cdx11"),
        (["-o", "a.CDX.gz"], 0, "note: the lines are CDXJ"),
        (["-o", "a.cdx", "-q"], 0, ""),
        (["-o", "a.cdxj"], 0, ""),
        (["-o", "A.CDXJ.GZ"], 0, ""),
        (["-o", "a.cdx", "--cdx11"], 0, ""),
        (["-o", "a.cdx", "-9"], 0, ""),
        (["-o", "a.cdxj", "--cdx11"], 2, "a.cdxj: --cdx11 writes no CDXJ; choose a name that ends in .cdx"),
        (["-o", "a.cdxj.gz", "-9"], 2, "a.cdxj.gz: --cdx9 writes no CDXJ"),
        (["-o", "a.cdxj", "--update"], 2, "--update needs an output directory"),
        (["-o", "a.cdxj", "--engine", "spark"], 2, "--engine spark needs an output directory"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)
def test_a_name_and_lines_that_do_not_match(
    words: list[str],
    status: int,
    said: str,
    pywb_warcs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["index", "-p", "1", *words, str(pywb_warcs / "example2.warc.gz")]) == status
    told = capfd.readouterr().err
    assert said in told
    assert ("note: the lines" in told) == ("note" in said)
    assert Path(words[1]).exists() == (status == 0)
    assert ("next: " in told) == (status == 0 and "-q" not in words)
