"""Every row of docs/reliability.md, tested with the command."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

import pytest

from cdxmill.cli.main import main

from ..material.wacz_files import read_range
from . import cases_files, cases_gzip, cases_plain, cases_tolerated, cases_wacz, cases_zst
from .cases import BUILDERS, Case, Sources
from .read_back import name_in
from .sources import Source
from .table import Row, read_table

ROWS = {
    slug: row
    for slug, row in read_table(Path(__file__).resolve().parents[2] / "docs/reliability.md").items()
    if not slug.startswith(
        ("copy-", "hadoop-", "scan-")
    )  # test_copy_table.py, tests/jobs/test_node_tasks.py, test_scan_table.py
}
MODULES = (cases_files, cases_gzip, cases_plain, cases_tolerated, cases_wacz, cases_zst)

NOBODY = 65534

_SUMMARY = re.compile(r"\d+ captures? of \d+ archives?|\d+ failures? in \d+ inputs?")


def test_every_row_has_a_builder_and_every_builder_has_a_row() -> None:
    assert list(ROWS) and sorted(ROWS) == sorted(BUILDERS)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_is_what_happens(
    row: Row, warc: Source, arc: Source, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    case = BUILDERS[row.slug](Sources(warc, arc))
    status = _run_forbidden(case) if case.is_forbidden else _run(case, tmp_path)
    out, err = capfdbinary.readouterr()
    said = [line for line in err.decode().splitlines() if not _SUMMARY.match(line)]
    assert len(said) == len(row.messages), said
    for line, pattern in zip(said, row.messages, strict=True):
        assert pattern.fullmatch(line), f"{line!r} is not {pattern.pattern!r}"
    assert status == row.status
    lost = set(_expected(row.lines, case))
    assert sorted(_names(out, tmp_path, case)) == sorted(
        name for number, name in enumerate(case.names) if number not in lost
    )


def _run(case: Case, directory: Path) -> int:
    return main(["index", "-p", "1", "-o", "-", "--dir-root", str(directory), *_write(case, directory)])


def _run_forbidden(case: Case) -> int:
    """As `_run`, but the files cannot be read. Root can read everything, and becomes nobody for the test."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        arguments = _write(case, directory)
        for path in directory.iterdir():
            path.chmod(0)
        os.seteuid(NOBODY if is_root else os.geteuid())
        try:
            return main(["index", "-p", "1", "-o", "-", *arguments])
        finally:
            os.seteuid(0 if is_root else os.geteuid())


def _write(case: Case, directory: Path) -> list[str]:
    for name, data in case.files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(data)
    if case.inputs[:1] == ("--manifest",):
        return ["--manifest", str(directory / case.inputs[1]), "--root", str(directory)]
    return [str(directory / name) for name in case.inputs or case.files]


def _expected(lines: str, case: Case) -> frozenset[int]:
    """The records without a line, after a check that `lines` matches the case."""
    everything = frozenset(range(len(case.names)))
    fits = {
        "all": not case.hit and bool(case.names),
        "all others": bool(case.hit) and case.hit < everything,
        "all before": case.hit == {len(case.names) - 1},
        "none": case.hit == everything,
    }
    assert fits[lines], f"{lines!r} does not match the case"
    return case.hit


def _names(out: bytes, directory: Path, case: Case) -> list[str]:
    """The record at the range of each line, read by warcio."""
    found = []
    for line in out.decode().splitlines():
        fields = json.loads(line.split(" ", 2)[2])
        begin = int(fields["offset"])
        data = read_range(directory / fields["filename"], begin, int(fields["length"]))
        found.append(name_in(data, case.dictionary))
    return found
