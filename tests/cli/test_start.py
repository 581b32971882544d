"""What a command imports. A run on a few small files takes a tenth of a second, nearly all of it for modules."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cdxmill.cli.main import main

HEAVY = frozenset(
    [
        "asyncio",
        "boto3",
        "concurrent.futures",
        "ctypes",
        "email",
        "http.client",
        "logging",
        "multiprocessing",
        "pyarrow",
        "rich",
        "selectolax",
        "shutil",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "traceback",
        "urllib3",
        "zstandard",
    ]
)
"""Libraries that a run on plain files can do without."""
WATCHED = {
    "ctypes",
    "multiprocessing",
    "selectolax",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "traceback",
    "zstandard",
}
"""`count` parses pages, in a process that is watched."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path) -> Path:
    place = tmp_path_factory.mktemp("start")
    for name, archive in (("old", "example.warc.gz"), ("new", "example2.warc.gz")):
        (place / name).mkdir()
        shutil.copy(pywb_warcs / archive, place / name / f"{name}.warc.gz")
    assert main(["build", "-q", "-p", "1", "-o", str(place / "C"), str(place / "old")]) == 0
    return place


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("lookup C http://example.com/?example=1", set()),
        ("get C http://example.com/?example=1 --archives old", set()),
        ("scan -q -p 1 -o found --where url:nowhere old", set()),
        ("index -q -p 1 -o cdx old", set()),
        ("count tags -q -p 1 -o tags.tsv old", WATCHED),
        ("add -q -p 1 C new", {"shutil", "tempfile", "traceback", "zstandard"}),
        ("remove -q -p 1 --keep-old 0 C http://example.com/", {"shutil", "tempfile"}),
    ],
)
def test_a_run_on_plain_files_imports_what_it_needs(command: str, needed: set[str], place: Path) -> None:
    call = [sys.executable, "-X", "importtime", "-m", "cdxmill", *command.split()]
    done = subprocess.run(call, cwd=place, capture_output=True, text=True, check=True)
    found = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "click" in found
    assert found & HEAVY <= needed
