"""zipnum notes two CDX files that name one archive, but have records of two."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cdxmill.cli.main import main

NOTE = "note: both have lines of c.warc.gz, but of different records"


def write(
    path: str, ranges: list[tuple[int, int]], timestamp: str = "20200101000000", name: str = "c"
) -> str:
    """A CDX file with a line for each range of an archive."""
    lines = [
        f'com,example)/{offset} {timestamp} {{"url": "http://example.com/{offset}", "length": "{size}",'
        f' "offset": "{offset}", "filename": "{name}.warc.gz"}}\n'
        for offset, size in ranges
    ]
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_bytes(gzip.compress("".join(sorted(lines)).encode()))
    return path


APART = [(0, 10), (10, 20), (30, 5)]


@pytest.mark.parametrize(
    ("ranges", "timestamp", "name", "is_noted"),
    [
        ([(100, 10), (35, 20)], "20200101000000", "c", False),  # two indexes of parts of one archive
        (APART, "20200101000000", "c", False),  # the same index again
        ([(5, 30)], "20200101000000", "c", True),
        (APART, "20210101000000", "c", True),
        ([(5, 30)], "20200101000000", "other", False),
    ],
)
def test_two_archives_with_one_name_are_noted(
    ranges: list[tuple[int, int]],
    timestamp: str,
    name: str,
    is_noted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [write("a/c.cdx.gz", APART), write("b/c.cdx.gz", ranges, timestamp, name)]
    assert main(["zipnum", "-q", "-s", "1", "-o", "cluster", *files]) == 0
    assert (f"a/c.cdx.gz and b/c.cdx.gz: {NOTE}" in capsys.readouterr().err) == is_noted


def test_real_archives_with_one_name_are_noted(
    pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for directory, archive in (("a", "iana.warc.gz"), ("b", "dupes.warc.gz")):
        Path(directory).mkdir()
        Path(directory, "c.warc.gz").write_bytes((pywb_warcs / archive).read_bytes())
        assert main(["index", "-q", "-o", f"cdx-{directory}", f"{directory}/c.warc.gz"]) == 0
    assert main(["zipnum", "-q", "-s", "1", "-o", "cluster", "cdx-a", "cdx-b"]) == 0
    assert NOTE in capsys.readouterr().err
