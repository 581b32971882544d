"""The rows of pywb's cdx-indexer and of cdxj-indexer for an archive.

As a script, it reads paths of archives from standard input, one per line, and prints one JSON document
per line: {"path": ..., "pywb": {...}, "cdxj": {...}}. It is a separate program, because the peers are
GPL, print warnings and write to stderr. None of that may enter the process of the tests.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable
from typing import Any

FIELDS = ("urlkey", "timestamp", "url", "mime", "status", "digest", "offset", "length")

LINE = re.compile(r'(.*?) (\S*) (\{".*\})', re.S)
"""A CDXJ line. The peers write keys with spaces, so the timestamp is the last word before the JSON."""

Row = dict[str, str]


def normalised(line: str) -> Row:
    """The eight compared fields of a CDXJ line, without `sha1:`. Absent, `-` and `unk` become ''."""
    match = LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"not a CDXJ line: {line!r}")
    urlkey, timestamp, text = match.groups()
    values: dict[str, Any] = {"urlkey": urlkey, "timestamp": timestamp, **json.loads(text)}
    row = {name: str(values.get(name) or "") for name in FIELDS}
    row["digest"] = row["digest"].removeprefix("sha1:")
    return {name: "" if value in ("-", "unk") else value for name, value in row.items()}


def run_pywb(path: str) -> str:
    """The output of `cdx-indexer -j FILE`, up to an error."""
    from pywb.indexer.cdxindexer import write_cdx_index

    out = io.BytesIO()
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (as the peer does)
            write_cdx_index(out, file, "f", cdxj=True)
    finally:
        PRINTED.append(out.getvalue().decode("utf-8"))
    return PRINTED[-1]


def run_cdxj(path: str) -> str:
    """The output of `cdxj-indexer FILE`, up to an error."""
    from cdxj_indexer.main import CDXJIndexer

    out = io.StringIO()
    try:
        CDXJIndexer(out, [path]).process_all()
    finally:
        PRINTED.append(out.getvalue())
    return PRINTED[-1]


PRINTED: list[str] = []
"""The output of the last run, even if it ended with an exception."""


def opinion(run: Callable[[str], str], path: str) -> dict[str, Any]:
    """The rows, the exception that ended the run (or ''), and stderr."""
    stderr, error = io.StringIO(), ""
    with contextlib.redirect_stderr(stderr):
        try:
            run(path)
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"
    rows = [normalised(line) for line in PRINTED.pop().split("\n") if line]
    return {"rows": rows, "error": error, "stderr": stderr.getvalue()}


def main() -> None:
    for line in sys.stdin:
        path = line.rstrip("\n")
        print(json.dumps({"path": path, "pywb": opinion(run_pywb, path), "cdxj": opinion(run_cdxj, path)}))


if __name__ == "__main__":
    main()
