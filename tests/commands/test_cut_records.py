"""Of a very large record, `scan` and `count --call` read the start, and say so if it was asked for."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

import cdxmill.stages.pages.full_record
from cdxmill import FullRecord
from cdxmill.cli.main import main
from cdxmill.commands.count import count_asked
from cdxmill.options.contents import CountOptions
from cdxmill.running.failures import Failures
from tests.commands.test_count import INFO, record

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
NOTE = "note: the record is larger than 256 MiB; only its start was read"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record that is larger than the limit, which is 1000 bytes here, and one that has just as many."""
    monkeypatch.setattr(cdxmill.stages.pages.full_record, "MAX_BODY", 1000)
    path = tmp_path / "a.warc.gz"
    sizes = (1001 - len(HEAD), 1000 - len(HEAD))
    path.write_bytes(INFO + b"".join(record("response", HEAD + b"x" * size) for size in sizes))
    return path


def place(archive: Path) -> str:
    return f"{archive}@{len(INFO)}: {NOTE}"


def test_scan_notes_it(archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["scan", "-q", "-p", "1", "--to", "jsonl", "--extract", "body", "-o", str(tmp_path / "out")]
    assert main([*call, str(archive)]) == 0
    [out] = (tmp_path / "out").glob("*.jsonl")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [len(row["body"] or "") for row in rows] == [0, 1000 - len(HEAD), 1000 - len(HEAD)]
    assert capsys.readouterr().err.splitlines() == [place(archive)]


def test_count_notes_it_if_the_function_reads_the_block(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def blocks(record: FullRecord) -> str:
        return str(len(record.block))

    def kinds(record: FullRecord) -> bytes:
        return record.kind

    for function, counts, notes in ((blocks, b"1000\t2\n", 1), (kinds, b"response\t2\n", 0)):
        out, failures = BytesIO(), Failures()
        count_asked(CountOptions(inputs=[str(archive)], call=function, processes=1), out, failures)
        assert (out.getvalue(), failures.count) == (counts, 0)
        assert capsys.readouterr().err.count(place(archive)) == notes
