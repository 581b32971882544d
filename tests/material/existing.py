"""Two archives whose outputs exist, for the tests of commands that write one output of each archive."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`a.warc.gz` and `b.warc.gz` in the current directory."""
    monkeypatch.chdir(tmp_path)
    for name, source in (("a.warc.gz", "iana.warc.gz"), ("b.warc.gz", "example.warc.gz")):
        shutil.copyfile(pywb_warcs / source, name)
        os.utime(name, (5, 5))
    return tmp_path


def state() -> dict[str, tuple[bytes, int]]:
    """The outputs: their bytes and times."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in Path("out").rglob("*")
        if path.is_file()
    }


def errors(capfd: pytest.CaptureFixture[str]) -> str:
    """What the command said."""
    return capfd.readouterr().err
