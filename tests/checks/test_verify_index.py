"""`cdxmill verify` says what is wrong with the lines of cluster.idx, and where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .checking import found


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (rb"\A.*", b"garbage", "@{at}: line 3 is not an index line: b'garbage'"),
        (rb"\A.*?\t", b"com,\t", "@{at}: line 3 is out of order: b'com,'"),
        (rb"\t3\Z", b"\t4", "@{at}: line 3 has the wrong number: "),
        (rb"cdx-00000", b"cdx-00003", "@{after}: line 4: the lines of cdx-00000.gz are not consecutive"),
    ],
)
def test_what_is_wrong_with_a_line_of_the_index_is_told_with_its_place(
    old: bytes, new: bytes, reason: str, cluster: Path
) -> None:
    path = cluster / "cluster.idx"
    lines = path.read_bytes().splitlines()
    lines[2] = re.sub(old, new, lines[2], count=1)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    at, after = (sum(len(line) + 1 for line in lines[:count]) for count in (2, 3))
    assert any("cluster.idx" + reason.format(at=at, after=after) in line for line in found(cluster))


def test_an_index_that_ends_in_a_line_is_truncated(cluster: Path) -> None:
    path = cluster / "cluster.idx"
    path.write_bytes(path.read_bytes()[:-1])
    assert any("cluster.idx: the last line is truncated" in line for line in found(cluster))
