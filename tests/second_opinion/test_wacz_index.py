"""The index that a sample WACZ brings along has the same records, times, offsets and lengths as cdxmill's lines."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cdxmill


def own_index(path: Path) -> dict[tuple[str, int], tuple[str, str, dict[str, Any]]]:
    """The lines of the index in a WACZ, by file name and offset."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not name.rpartition("/")[2].startswith("index.cdx"):
                continue
            data = archive.read(name)
            text = gzip.decompress(data) if name.endswith(".gz") else data
            for line in text.decode().splitlines():
                key, timestamp, fields = line.split(" ", 2)
                if key != "!meta":
                    content = json.loads(fields)
                    found[content["filename"], int(content["offset"])] = key, timestamp, content
    return found


def differences(path: Path) -> Counter[str]:
    """How many lines of a WACZ differ from those in it, by field."""
    expected = own_index(path)
    found = {(one["filename"], int(one["offset"])): one for one in cdxmill.captures(path)}
    assert found.keys() == expected.keys()
    counts = Counter({"lines": len(found)})
    for place, one in found.items():
        key, timestamp, content = expected[place]
        assert one["timestamp"] == timestamp
        assert int(one["length"]) == int(content["length"])
        assert one["url"] == content["url"]
        counts["key"] += one["urlkey"] != key and not key.startswith("file:")
        assert one["digest"].rpartition(":")[2] == content["digest"].rpartition(":")[2]
        if not key.startswith("file:"):
            assert one.get("mime") == content.get("mime")
            assert str(one.get("status", "-")) == str(content.get("status", "-"))
    return counts


@pytest.fixture(scope="module")
def waczs(samples: Path) -> list[Path]:
    """The samples that can be indexed: not the one without WARCs, the truncated one and the compressed one."""
    unusable = ("invalid_example_1.wacz", "AIT-915-3.wacz", "quotes.wacz")
    return sorted(path for path in samples.rglob("*.wacz") if path.is_file() and path.name not in unusable)


def test_the_lines_are_those_of_the_index_in_the_wacz(waczs: list[Path]) -> None:
    counts: Counter[str] = Counter()
    for path in waczs:
        counts += differences(path)
    assert len(waczs) >= 22
    assert counts["lines"] >= 103
    assert counts["key"] <= 2
