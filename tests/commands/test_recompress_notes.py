"""What `recompress` notes of all archives together, and their proofs of each: the file name in the first record, and digests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cdxmill.cli.main import main

NOTE = "note: the first record of {} still has the old file name (WARC-Filename)"


def record(kind: str, filename: str, content: bytes = b"a: b\r\n") -> bytes:
    """A gzip member with a record of this type. It has a file name, unless that is empty."""
    named = f"WARC-Filename: {filename}\r\n" if filename else ""
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n{named}"
    return gzip.compress(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content + b"\r\n\r\n")


@pytest.mark.parametrize(
    ("to", "names", "is_other"),
    [
        ("gz", ["a.warc.gz"], False),
        ("zst", ["a.warc.gz"], True),
        ("zst", ["a.warc.zst"], False),
        ("zst", [""], False),
        ("zst", ["", "other.warc.gz"], False),
        ("gz", ["other.warc.gz", "a.warc.gz"], True),
    ],
)
def test_a_file_name_that_is_another_one_now_is_noted(
    to: str,
    names: list[str],
    is_other: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """That of the first record counts. Records stay as they are, so the proof has it."""
    monkeypatch.chdir(tmp_path)
    Path("a.warc.gz").write_bytes(b"".join(record("warcinfo", name) for name in names))
    assert main(["recompress", "-p", "1", "--to", to, "-o", "out", "a.warc.gz"]) == 0
    assert (NOTE.format("1 archive") in capfd.readouterr().err) == is_other
    proof = json.loads(Path(f"out/a.warc.{to}.proof.json").read_bytes())
    assert proof.get("warc_filename") == (names[0] if is_other else None)
    assert proof["records"] == {"warcinfo": len(names)}


def test_a_file_name_in_a_record_that_is_no_warcinfo_is_not_that_of_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.warc.gz").write_bytes(record("metadata", "other.warc.gz"))
    Path("b.warc.gz").write_bytes(record("warcinfo", "b"))
    Path("c.warc.gz").write_bytes(record("warcinfo", "c"))
    assert main(["recompress", "-p", "1", "-o", "out", "a.warc.gz", "b.warc.gz", "c.warc.gz"]) == 0
    assert NOTE.format("2 archives") in capfd.readouterr().err
    assert main(["recompress", "-q", "-p", "1", "--replace", "-o", "out", "b.warc.gz"]) == 0
    assert "note" not in capfd.readouterr().err
