"""Every row about `scan` of docs/reliability.md, tested with the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.storage import patience

from ..storage.fault_server import failing
from .cases_scan import BAD, CASES, URLS, ScanCase
from .table import Row, read_table

ROWS = {
    slug: row
    for slug, row in read_table(Path(__file__).resolve().parents[2] / "docs/reliability.md").items()
    if slug.startswith("scan-")
}
SCANNED = {"all": URLS, "all others": [*URLS[:BAD], *URLS[BAD + 1 :]], "none": []}


def test_every_row_has_a_case_and_every_case_has_a_row() -> None:
    assert sorted(ROWS) == sorted(CASES)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_is_what_happens(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    case, out = CASES[row.slug], tmp_path / "out"
    archive = case.archive()
    for name, value in (
        ("FIRST_WAIT", 0.001),
        ("LONGEST_WAIT", 0.01),
        ("TRIES", case.tries),
        ("MORE_TRIES", case.tries),
    ):
        monkeypatch.setattr(patience, name, value)
    if case.fault.startswith("stall"):
        monkeypatch.setattr(patience, "READ_SECONDS", 0.3)
    with failing() as server:
        server.files["/a.warc.gz"] = archive
        server.plan(case.fault, 2 if case.is_once else 1, once=case.is_once)
        path = f"{server.url}/a.warc.gz" if case.fault else str(tmp_path / "a.warc.gz")
        (tmp_path / "a.warc.gz").write_bytes(archive)
        call = ["scan", "-q", "-p", "1", "-o", str(out), *_options(case, tmp_path, row.slug), path]
        with case.around(out):
            status = main(call)
        said = capfd.readouterr().err.splitlines()
        assert len(said) == len(row.messages), said
        for line, message in zip(said, row.messages, strict=True):
            assert message.fullmatch(line), f"{line!r} is not {message.pattern!r}"
        assert (status, scanned(out)) == (row.status, SCANNED[row.lines])
        assert (out / "failures.tsv").exists() == (status == 1 or (status == 3 and bool(case.fault)))
        assert not list(out.glob(".*.tmp"))
        server.plan("", 0, once=True)
        again = main(call)
    is_mended = bool(case.fault) or status == 3
    assert (again, scanned(out)) == ((0, URLS) if is_mended else (row.status, SCANNED[row.lines]))


def _options(case: ScanCase, directory: Path, slug: str) -> list[str]:
    """The options of a case, with its function in a module of its own."""
    if not case.code:
        return list(case.options)
    module = f"case_{slug.replace('-', '_')}"
    (directory / f"{module}.py").write_text(f"import faulthandler, os, time\ndef step(record):\n{case.code}")
    sys.path.insert(0, str(directory))
    return [*case.options, "--call", f"{module}:step"]


def scanned(out: Path) -> list[str]:
    """The URLs in the outputs."""
    import gzip

    found = []
    for path in out.rglob("*.jsonl*"):
        data = path.read_bytes()
        found += [
            json.loads(line)["url"]
            for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
        ]
    return sorted(found)
