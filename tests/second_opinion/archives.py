"""The archives of the comparison: the samples, and those that come with pywb."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import NamedTuple

SAMPLES = Path(os.environ.get("CDXMILL_SAMPLES") or "../shared/samples").resolve()

NAMED_AS = (".arc", ".warc", ".arc.gz", ".warc.gz", ".warc.bz2", ".warc.in")
"""Files with these endings are compared whatever they contain, because an indexer finds them by name."""


class Archive(NamedTuple):
    """A file, with a short name that is the same on every machine."""

    name: str
    path: Path


def sample_archives() -> list[Archive]:
    """Every sample that is WARC or ARC by INDEX.tsv or by its name."""
    index = SAMPLES / "INDEX.tsv"
    if not index.exists():
        return []
    with index.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = [f"{row['repo'].replace('/', '+')}/{row['path']}" for row in rows if _is_archive(row)]
    return [Archive(name, SAMPLES / name) for name in names]


def _is_archive(row: dict[str, str]) -> bool:
    by_content = row["format"].startswith(("WARC", "ARC"))
    return by_content or row["path"].lower().endswith(NAMED_AS)


def pywb_archives() -> list[Archive]:
    """The real archives that pywb's wheel installs."""
    directory = Path(sys.prefix) / "sample_archive" / "warcs"
    return [Archive(f"sample_archive/{path.name}", path) for path in sorted(directory.iterdir())]


ARCHIVES = sample_archives() + pywb_archives()
