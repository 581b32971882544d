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
        "orjson",
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
        "uuid",
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
WRITERS = {
    "cdxmill.cluster.overlays",
    "cdxmill.inputs.cdx_files",
    "cdxmill.stages.lines.merge_lines",
    "cdxmill.stages.lines.sort_lines",
    "cdxmill.stages.zipnum.write_shard",
}
"""What sorts index lines, and writes clusters or changes them."""


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
        ("get C http://example.com/?example=1 --archives old", {"orjson", "uuid"}),
        ("report -q -p 1 --json report.json C", {"orjson", "uuid"}),
        ("scan -q -p 1 -o found --where url:nowhere old", set()),
        ("index -q -p 1 -o cdx old", set()),
        ("count tags -q -p 1 -o tags.tsv old", WATCHED),
        ("add -q -p 1 C new", {"shutil", "tempfile", "traceback", "zstandard"}),
        ("remove -q -p 1 --keep-old 0 C http://example.com/", {"shutil", "tempfile"}),
    ],
)
def test_a_run_on_plain_files_imports_what_it_needs(command: str, needed: set[str], place: Path) -> None:
    found = imported_by(command, place)
    assert "click" in found
    assert found & HEAVY <= needed


@pytest.mark.parametrize(
    "command",
    [
        "lookup C http://example.com/",
        "report -q -p 1 --replace --json report.json C",
        "scan -q -p 1 --replace -o found old",
    ],
)
def test_a_command_that_reads_imports_nothing_that_writes_clusters(command: str, place: Path) -> None:
    found = imported_by(command, place)
    assert "cdxmill.errors" in found
    assert found & WRITERS == set()


def imported_by(command: str, place: Path) -> set[str]:
    call = [sys.executable, "-X", "importtime", "-m", "cdxmill", *command.split()]
    done = subprocess.run(call, cwd=place, capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
