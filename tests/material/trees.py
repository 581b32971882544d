"""Captures, and prefix B-trees of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cdxmill.commands.prefix_index import build_tree
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.options.trees import TreeBuilding
from cdxmill.running.failures import Failures
from cdxmill.search.prefix_index import key_ranges, open_prefix_index


def line(
    key: str, time: int = 20200101000000, archive: int = 0, offset: int = 0, status: str | None = "200"
) -> bytes:
    fields = {
        "url": f"http://{key}",
        "status": status,
        "length": "99",
        "offset": str(offset),
        "filename": f"a{archive}.warc.gz",
    }
    return f"{key} {time} {json.dumps({name: value for name, value in fields.items() if value})}".encode()


LINES = sorted(
    [
        *(
            line(f"com,example)/{page:03d}", 20200101000000 + year, page % 7, page)
            for page in range(300)
            for year in (0, 1)
        ),
        line("com,example,blog)/", archive=9, offset=5, status=None),
        line("com,example,blog)/a b".replace(" ", "%20"), status="-"),
        line("com,examples)/"),
        line("org,example)/", 20210101000000),
    ]
)


def short(found: bytes) -> tuple[str, str, str, str, str, str]:
    """What a line of an answer keeps."""
    key, time, rest = found.decode().split(" ", 2)
    fields = json.loads(rest)
    status = fields.get("status", "-")
    return key, time, status, fields["length"], fields["offset"], fields["filename"]


def build(directory: Path, *named: Path | str, **options: Any) -> str:
    output = str(directory / "x.tree")
    build_tree(TreeBuilding(named, output=output, **options), Failures(printed=False))
    return output


def all_of(tree: str) -> list[bytes]:
    with open_prefix_index(tree) as index:
        return [one for lines in index.captures([KeyRange(b"", b"\xff")]) for one in lines]


def found_in(tree: str, *queries: str) -> list[bytes]:
    """The lines of queries."""
    with open_prefix_index(tree) as index:
        ranges = [one for query in queries for one in key_ranges(query, index.layout)]
        return [line for lines in index.captures(ranges) for line in lines]
