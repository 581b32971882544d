"""Links in directories: each file is taken once, and what is not taken is reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdxmill.cli.main import main


@pytest.fixture
def directory(tmp_path: Path, pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("d/below").mkdir(parents=True)
    Path("d/a.warc.gz").write_bytes((pywb_warcs / "example.warc.gz").read_bytes())
    Path("d/b.warc.gz").symlink_to("a.warc.gz")
    Path("d/below/c.warc.gz").symlink_to("../a.warc.gz")
    return tmp_path


@pytest.mark.parametrize(
    ("named", "note"),
    [
        ("d", "d: note: 2 files skipped: 2 link to a file that is taken already\n"),
        ("d/*.warc.gz", "d/*.warc.gz: note: 1 file skipped: 1 link to a file that is taken already\n"),
        ("d/below", ""),
        ("d/b.warc.gz", ""),
    ],
)
def test_a_file_with_several_names_is_taken_once(
    named: str, note: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "-q", "-p", "1", "-o", "out", named]) == 0
    assert capfd.readouterr().err == note
    (made,) = Path("out").rglob("*.cdx.gz")
    wanted = {"d": "a", "d/*.warc.gz": "a", "d/below": "c", "d/b.warc.gz": "b"}[named]
    assert made.name == f"{wanted}.cdx.gz"


def test_a_directory_that_is_linked_is_searched_once(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("d/loop").symlink_to("../d")
    assert main(["index", "-q", "-p", "1", "-o", "out", "d"]) == 0
    assert "1 link to a directory that was searched already" in capfd.readouterr().err
    assert len(list(Path("out").rglob("*.cdx.gz"))) == 1


def test_what_is_no_file_but_has_its_name_is_a_failure(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("d/broken.warc.gz").symlink_to("nowhere")
    os.mkfifo("d/p.warc.gz")
    os.mkfifo("d/other")
    assert main(["index", "-q", "-p", "1", "-o", "out", "d"]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert lines[:2] == [
        "d/broken.warc.gz: is a broken symbolic link; check what it points to",
        "d/p.warc.gz: is a socket, pipe or device; name a file",
    ]
    assert "1 socket, pipe or device" in lines[2]
    assert len(lines) == 3
