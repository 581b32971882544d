"""cluster.json, written and read."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.cluster_manifest import FORMAT_VERSION, ShardEntry, format_manifest, parse_manifest
from cdxmill.formats.split_points import format_text
from cdxmill.formats.zipnum_block import Compressor

counts = st.integers(0, 2**53)
entries = st.builds(
    ShardEntry, st.text(max_size=20), counts, counts, counts, st.text("0123456789abcdef", max_size=64)
)
points = st.lists(st.binary(min_size=1).filter(lambda point: b"\n" not in point), unique=True).map(sorted)


@given(st.lists(entries), points, st.integers(1, 10_000))
def test_what_is_written_is_read_again(shards: list[ShardEntry], splits: list[bytes], lines: int) -> None:
    content = parse_manifest(format_manifest(shards, splits, Compressor("zlib", 9), lines))
    assert [ShardEntry(**shard) for shard in content["shards"]] == shards
    assert content["lines"] == sum(shard.lines for shard in shards)
    assert content["blocks"] == sum(shard.blocks for shard in shards)
    assert content["numlines"] == lines
    assert content["splits_sha256"] == hashlib.sha256(format_text(splits)).hexdigest()
    assert content["compressor"] == {"library": "zlib", "version": Compressor("zlib").version(), "level": 9}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff",
        b'"format"',
        json.dumps({"format": FORMAT_VERSION + 1}).encode(),
    ],
)
def test_what_is_no_manifest_of_this_version_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_manifest(data)
