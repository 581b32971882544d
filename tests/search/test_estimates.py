"""Estimates of a cluster of 3 shards with blocks of 20 lines: blocks between the first and the last count whole, these half."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdxmill.cli.main import main

KNOWN = {
    "*.com": (1610, 1563, 1620, 81),
    "a.com/*": (810, 782, 820, 41),
    "http://a.com/page/0007": (10, 0, 20, 1),
    "http://a.com/page/0010": (20, 1, 40, 2),
    "http://absent.com/": (10, 0, 20, 1),
    "http://0.absent/": (0, 0, 0, 0),
    "*.org": (800, 781, 820, 41),
    "a.com/page/000*": (10, 1, 20, 1),
    "*": (2410, 2363, 2420, 121),
}
"""Lines, the least and the most, blocks."""
UNKNOWN = {
    "*.com": (241_500, 81, None, 81),
    "http://a.com/page/0007": (1500, 0, None, 1),
    "http://a.com/page/0010": (3000, 1, None, 2),
    "http://0.absent/": (0, 0, 0, 0),
    "*.org": (120_000, 40, None, 41),
}
"""The same without cluster.json, which has the lines of a block: 3000 are usual."""
PAGES = {
    ("*.com", 10): (9, 81),
    ("*.com", 81): (1, 81),
    ("*.com", 80): (2, 81),
    ("a.com/*", 1): (41, 41),
    ("http://a.com/page/0007", 10): (1, 1),
    ("http://absent.com/", 10): (0, 0),
    ("http://0.absent/", 10): (0, 0),
}
"""The number of pages, and of blocks."""


def told(capfd: pytest.CaptureFixture[str], *args: str | Path) -> dict[str, int | None]:
    assert main(["lookup", *map(str, args)]) == 0
    found: dict[str, int | None] = json.loads(capfd.readouterr().out)
    return found


def test_the_numbers_of_estimates(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for url, numbers in KNOWN.items():
        assert tuple(told(capfd, directory, url, "--estimate").values()) == numbers, url
    (directory / "cluster.json").unlink()
    for url, others in UNKNOWN.items():
        assert tuple(told(capfd, directory, url, "--estimate").values()) == others, url


def number_blocks(directory: Path, first: int, end: int) -> None:
    """Make an index of which only the blocks from `first` to `end` have a number, as other tools write it."""
    index = directory / "cluster.idx"
    rows = [line.split("\t") for line in index.read_text().splitlines()]
    assert len(rows) == 121
    for extra in ("cluster.json", "cluster.loc", "cluster.summary"):
        (directory / extra).unlink()
    columns = [row if first <= place < end else row[:4] for place, row in enumerate(rows)]
    index.write_text("".join("\t".join(row) + "\n" for row in columns))


@pytest.mark.parametrize(("first", "end"), [(0, 121), (0, 0), (41, 121)], ids=str)
def test_the_numbers_of_pages(
    directory: Path, capfd: pytest.CaptureFixture[str], first: int, end: int
) -> None:
    number_blocks(directory, first, end)
    for (url, size), (pages, blocks) in PAGES.items():
        found = told(capfd, directory, url, "--show-num-pages", "--page-size", str(size))
        assert found == {"pages": pages, "pageSize": size, "blocks": blocks}, url


def test_blocks_without_a_number_after_others_are_reported(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    number_blocks(directory, 0, 40)
    assert main(["lookup", str(directory), "*.com", "--show-num-pages"]) == 1
    assert "has the number None, expected 41; check it" in capfd.readouterr().err
