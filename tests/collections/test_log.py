"""changes.jsonl: a line for each change, with what was asked and what it did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cdxmill
from cdxmill.cluster import change
from cdxmill.commands.collections.summary import LOG

from ..material.cdx_files import cdxj


def cluster_of(directory: Path, *names: str) -> Path:
    lines = sorted(cdxj(f"com,{name})/") for name in names)
    directory.with_suffix(".cdxj").write_bytes(b"\n".join([*lines, b""]))
    cdxmill.zipnum(directory.with_suffix(".cdxj"), output=directory, shards=1, location="/x", processes=1)
    return directory


def test_each_change_says_what_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "LOCATIONS_FIRST", 0)  # nobody reads it
    cluster, more = cluster_of(tmp_path / "a", "a", "b"), cluster_of(tmp_path / "more", "c", "d")
    single = tmp_path / "single.cdxj"
    single.write_bytes(cdxj("com,e)/") + b"\n" + cdxj("com,f)/") + b"\n")
    cdxmill.add(cluster, [single, more], cdx=True, processes=1)
    cdxmill.remove(cluster, "b.com/", from_ts="2021", keep_old=0)
    cdxmill.remove(cluster, "f.com/*", keep_old=0)
    cdxmill.add(cluster, [single], cdx=True, processes=1, mode="overlay")
    single.write_bytes(cdxj("com,f)/") + b"\n" + cdxj("com,g)/") + b"\n")
    cdxmill.add(cluster, [single], cdx=True, processes=1, mode="overlay")
    cdxmill.compact(cluster, keep_old=0)
    log = [json.loads(line) for line in (cluster / LOG).read_bytes().splitlines()]
    times = [one.pop("time") for one in log]
    assert times == sorted(times)
    assert log == [
        {"change": 1, "command": "add", "inputs": 2, "added": 4, "removed": 0},
        {"change": 2, "command": "remove", "queries": ["f.com/*"], "added": 0, "removed": 1},
        {"change": 3, "command": "add", "inputs": 1, "added": 1, "removed": 0},
        {"change": 4, "command": "add", "inputs": 1, "added": 1, "removed": 0},
        {"change": 5, "command": "compact", "added": 0, "removed": 0},
    ]
