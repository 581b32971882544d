"""docs/migrating.md has every option of both peers, and the cdxmill commands in it work."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import DOCS, environment

PEERS = ("cdx-indexer", "cdxj-indexer")
NONE = "none"

_CODE = re.compile(r"`([^`]+)`")
# In both help texts, the names of an option are indented by two spaces: `  -d, --dir-root DIR   text`.
_NAMES = re.compile(r"^  (-.*?)(?:  |$)", re.M)
_NAME = re.compile(r"(?<![\w-])--?\w[\w-]*")


def table(peer: str) -> list[tuple[str, str, str]]:
    """The rows of a peer's table: option, counterpart, note."""
    _, _, rest = (DOCS / "migrating.md").read_text().partition(f"\n| {peer} | cdxmill | note |\n")
    rows = rest.partition("\n\n")[0].splitlines()[1:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [(option, counterpart, note) for option, counterpart, note in cells]


def options_in_help(peer: str) -> set[str]:
    """The names of all options and arguments."""
    words = [str(Path(sys.executable).parent / peer), "--help"]
    text = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True).stdout
    return {name for names in _NAMES.findall(text) for name in _NAME.findall(names)} | {"inputs"}


COUNTERPARTS = sorted(
    {
        command
        for peer in PEERS
        for _, counterpart, note in table(peer)
        for command in _CODE.findall(counterpart + note)
        if command.startswith("cdxmill ")
    }
)


def test_all_options_are_found_in_the_helps() -> None:
    assert options_in_help("cdx-indexer") >= {"-s", "--sort", "-d", "--dir-root", "-mj", "--minimal-cdxj"}
    assert options_in_help("cdxj-indexer") >= {"-rf", "--replace-fields", "--records", "-11", "-c"}


@pytest.mark.parametrize("peer", PEERS)
def test_the_table_has_exactly_the_peer_s_options(peer: str) -> None:
    in_table = {name for option, _, _ in table(peer) for name in _CODE.findall(option)}
    assert in_table == options_in_help(peer)


@pytest.mark.parametrize("peer", PEERS)
def test_an_option_has_a_counterpart_or_a_reason(peer: str) -> None:
    for option, counterpart, note in table(peer):
        assert _CODE.findall(counterpart) or (counterpart == NONE and note), option


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path) -> Path:
    """A folder with the archives of the tables."""
    (tmp_path / "warcs").mkdir()
    shutil.copy(pywb_warcs / "example.warc.gz", tmp_path / "a.warc.gz")
    shutil.copy(pywb_warcs / "iana.warc.gz", tmp_path / "warcs")
    return tmp_path


@pytest.mark.parametrize("command", COUNTERPARTS)
def test_a_counterpart_runs(command: str, directory: Path) -> None:
    done = subprocess.run(
        shlex.split(command), cwd=directory, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def captures(command: str, directory: Path) -> set[tuple[str, ...]]:
    """Key, timestamp, offset and file of each line."""
    done = subprocess.run(
        shlex.split(command), cwd=directory, env=environment(), capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith((" CDX", "- "))]
    return {_identity(line) for line in lines}


def _identity(line: str) -> tuple[str, ...]:
    key, timestamp, rest = line.split(" ", 2)
    if not rest.startswith("{"):
        return key, timestamp, *rest.split(" ")[-2:]
    fields = dict(re.findall(r'"(\w+)": ?"([^"]*)"', rest))
    return key, timestamp, fields["offset"], fields["filename"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("cdx-indexer -o - a.warc.gz", "cdxmill index -o - --cdx11 a.warc.gz"),
        ("cdx-indexer -j -s -o - a.warc.gz", "cdxmill index -o - a.warc.gz"),
        ("cdx-indexer -9 -o - a.warc.gz", "cdxmill index -o - -9 a.warc.gz"),
        ("cdx-indexer -j -a -o - a.warc.gz", "cdxmill index -o - --records all a.warc.gz"),
        ("cdx-indexer -j -p -o - post.warc.gz", "cdxmill index -o - --post-append post.warc.gz"),
        ("cdx-indexer -j -u -o - a.warc.gz", "cdxmill index -o - --unsurt a.warc.gz"),
        ("cdx-indexer -mj -o - a.warc.gz", "cdxmill index -o - --minimal a.warc.gz"),
        ("cdx-indexer -j -r -o - warcs", "cdxmill index -o - warcs"),
        ("cdx-indexer -j -d .. -o - a.warc.gz", "cdxmill index -o - --dir-root .. a.warc.gz"),
        ("cdxj-indexer -s a.warc.gz warcs", "cdxmill index -o - a.warc.gz warcs"),
        ("cdxj-indexer -11 a.warc.gz", "cdxmill index -o - -11 a.warc.gz"),
        ("cdxj-indexer -9 a.warc.gz", "cdxmill index -o - -9 a.warc.gz"),
        ("cdxj-indexer --records revisit a.warc.gz", "cdxmill index -o - --records revisit a.warc.gz"),
        ("cdxj-indexer --records all a.warc.gz", "cdxmill index -o - --records all a.warc.gz"),
        ("cdxj-indexer -p post.warc.gz", "cdxmill index -o - --post-append post.warc.gz"),
        ("cdxj-indexer --dir-root .. a.warc.gz", "cdxmill index -o - --dir-root .. a.warc.gz"),
    ],
)
def test_a_counterpart_has_lines_for_the_same_records(
    before: str, now: str, directory: Path, pywb_warcs: Path
) -> None:
    shutil.copy(pywb_warcs / "post-test.warc.gz", directory / "post.warc.gz")
    expected = captures(before, directory)
    assert expected
    assert captures(now, directory) == expected
