"""A read may return fewer bytes than it was asked for, long before the end of the file: no command takes that for the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cdxmill

CALLS: dict[str, Callable[[Path, Path], Any]] = {
    "build": lambda at, out: cdxmill.build(at / "warcs", output=out, shards=2, numlines=20, processes=1),
    "copy": lambda at, out: cdxmill.copy(
        at / "C", "*.org", output=out, archives=at / "warcs", related=True, originals=True, processes=1
    ),
    "WACZ": lambda at, out: cdxmill.export(
        at / "C", "*.org", format="wacz", output=f"{out}.wacz", archives=at / "warcs", processes=1
    ),
    "count": lambda at, out: cdxmill.count("links", at / "warcs", output=out, processes=1),
    "merge": lambda at, out: cdxmill.merge([at / "C", at / "D"], output=out, processes=1),
    "prefix index": lambda at, out: cdxmill.build_prefix_index(at / "C", output=f"{out}.tree"),
    "recompress": lambda at, out: cdxmill.recompress(at / "warcs", output=out, group=True, processes=1),
    "scan": lambda at, out: cdxmill.scan(at / "warcs", output=out, extract="url,title,links", processes=1),
}


@pytest.fixture(scope="module")
def material(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("material")
    (place / "warcs").mkdir()
    for name in ("iana.warc.gz", "example.warc.gz", "example-iana.org-chunked.warc"):
        (place / "warcs" / name).symlink_to(pywb_warcs / name)
    for name, archive in (("C", place / "warcs"), ("D", place / "warcs/iana.warc.gz")):
        cdxmill.build(archive, output=place / name, shards=2, numlines=20, processes=1)
    return place


def content_of(place: Path) -> dict[str, bytes]:
    """The files of an output; those that name it or the time are not compared."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and not path.name.startswith(".") and path.name != "cluster.loc"
    }


@pytest.mark.parametrize("name", CALLS)
def test_reads_that_stop_early_change_nothing(
    name: str, material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of a copy in scratch space was taken for shorter, and the copy had fewer records, with exit status 0."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    pread = os.pread
    for place, read in (("whole", pread), ("short", lambda file, size, at: pread(file, -(-size // 2), at))):
        (tmp_path / place).mkdir()
        monkeypatch.setattr(os, "pread", read)
        CALLS[name](material, tmp_path / place / "out")
    assert content_of(tmp_path / "short") == content_of(tmp_path / "whole")
