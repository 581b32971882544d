"""`recompress --index` writes an index that is missing; `--group` joins the records of a capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cli.main import main

from .test_recompress import decompressed, indexes, recompress, record


def test_an_index_that_is_missing_is_written(
    tmp_path: Path, pywb_warcs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = ["recompress", "-p", "1", "-o", "out", str(pywb_warcs / "iana.warc.gz")]
    assert main(call) == 0
    assert not indexes(tmp_path)
    for expected in ("1 archive, ", "0 archives, 1 up to date"):
        assert main([*call, "--index"]) == 0
        assert expected in capfd.readouterr().err
        assert len(indexes(tmp_path)) == 1


def linked(number: int, kind: str, about: int) -> bytes:
    return record(b"some text" * number, number).replace(
        b"WARC-Type: resource", b"WARC-Type: %b\r\nWARC-Concurrent-To: <urn:x:%d>" % (kind.encode(), about)
    )


def test_the_records_of_a_capture_are_grouped_and_taken_apart_again(tmp_path: Path) -> None:
    records = [
        record(b"info", 1),
        *(linked(2, "request", 3), linked(3, "response", 2), linked(4, "metadata", 3)),
        *(linked(5, "response", 5), linked(6, "metadata", 5)),
        linked(7, "metadata", 3),
        record(b"x" * (9 << 20), 8),
        linked(9, "metadata", 8),
    ]
    source = tmp_path / "a.warc"
    source.write_bytes(b"".join(records))
    assert recompress("--group", "-o", tmp_path / "new", source) == 0
    (new,) = (tmp_path / "new").rglob("*.zst")
    groups = decompressed(new)
    assert groups == [
        records[0],
        b"".join(records[1:4]),
        b"".join(records[4:6]),
        *records[6:],
    ]
    assert main(["index", "-q", "-o", str(tmp_path / "cdx"), str(new)]) == 1
    assert recompress("-o", tmp_path / "again", new) == 0
    (again,) = (tmp_path / "again").rglob("*.zst")
    assert decompressed(again) == records


def test_a_group_cannot_be_indexed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert recompress("--group", "--index", "-o", tmp_path / "new", tmp_path) == 2
    assert "cannot be used together" in capfd.readouterr().err
