"""cluster.json is written and read; a manifest that cdxmill did not write is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.compressor import LEVELS, Compressor
from cdxmill.formats.clusters.manifest import (
    FORMAT_VERSION,
    Manifest,
    ShardEntry,
    UsedCompressor,
    format_manifest,
    make_manifest,
    most_lines,
    origin_of,
    parse_manifest,
)
from cdxmill.formats.clusters.split_points import format_text
from cdxmill.formats.clusters.zipnum import overlay_name, shard_name

counts = st.integers(0, 2**53)
digests = st.binary(max_size=9).map(lambda data: hashlib.sha256(data).hexdigest())
entries = st.lists(st.tuples(counts, counts, counts, digests), min_size=1, max_size=9).map(
    lambda rows: tuple(ShardEntry(shard_name(number), *row) for number, row in enumerate(rows))
)
compressors = st.builds(
    UsedCompressor,
    st.sampled_from(list(LEVELS)),
    st.text(max_size=20),
    st.integers(1, 9),
    st.integers(0, 3000),
)
changes = st.just((0, "")) | st.tuples(st.integers(1, 99), digests)
manifests = st.builds(
    lambda fields, change: Manifest(*fields, *change),
    st.tuples(entries, st.integers(1, 10_000), compressors, digests),
    changes,
)
points = st.lists(st.binary(min_size=1).filter(lambda point: b"\n" not in point), unique=True).map(sorted)


@given(manifests)
def test_a_written_manifest_is_read_back(manifest: Manifest) -> None:
    data = format_manifest(manifest)
    assert parse_manifest(data) == manifest
    assert format_manifest(parse_manifest(data)) == data
    content = json.loads(data)
    assert content["lines"] == sum(shard.lines for shard in manifest.shards)
    assert content["blocks"] == sum(shard.blocks for shard in manifest.shards)


@given(entries, points, st.integers(1, 10_000))
def test_a_new_manifest_records_compressor_and_split_points(
    shards: tuple[ShardEntry, ...], splits: list[bytes], lines: int
) -> None:
    manifest = make_manifest(shards, splits, Compressor("zlib", 9), lines)
    assert (manifest.shards, manifest.numlines) == (shards, lines)
    assert manifest.splits_sha256 == hashlib.sha256(format_text(splits)).hexdigest()
    assert manifest.compressor == ("zlib", Compressor("zlib").version(), 9, 0)


@given(manifests, st.data())
def test_every_changed_byte_is_found(manifest: Manifest, data: st.DataObject) -> None:
    written = bytearray(format_manifest(manifest))
    written[data.draw(st.integers(0, len(written) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match=r".+"):
        parse_manifest(bytes(written))


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
        b"[" * 100_000,
        b'{"format": 1, "a": ' + b"[" * 900 + b"]" * 900 + b"}",
        json.dumps({"format": FORMAT_VERSION + 1}).encode(),
    ],
)
def test_data_that_is_not_a_manifest_of_this_version_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_manifest(data)


def signed(content: dict[str, Any]) -> bytes:
    """A manifest of any content with the right checksum, written as cdxmill writes it."""
    content.pop("sha256", None)
    digest = hashlib.sha256(json.dumps(content, indent=1).encode()).hexdigest()
    return (json.dumps({**content, "sha256": digest}, indent=1) + "\n").encode()


@pytest.fixture
def content() -> dict[str, Any]:
    """A valid manifest of two shards."""
    rows = [ShardEntry(shard_name(number), 90, 5, 2, "0" * 64) for number in range(2)]
    data = format_manifest(make_manifest(rows, [b"a"], Compressor("zlib", 9), 3))
    found: dict[str, Any] = json.loads(data)
    assert signed(found.copy()) == data
    return found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content.update(lines=11), "lines is 11, but its shards have 10"),
        (lambda content: content.update(blocks=0), "blocks is 0, but its shards have 4"),
        (lambda content: content.update(numlines=0), "numlines is less than 1"),
        (lambda content: content.update(numlines=True), "missing, unknown or invalid fields"),
        (lambda content: content.update(more=1), "missing, unknown or invalid fields"),
        (lambda content: content.pop("lines"), "missing, unknown or invalid fields"),
        (lambda content: content.update(splits_sha256="0"), "splits_sha256 is not a SHA-256"),
        (lambda content: content.update(shards=[]), "it has no shards"),
        (lambda content: content.update(shards=[7]), "entry 1 has missing, unknown or invalid fields"),
        (lambda content: content["shards"][1].pop("lines"), "entry 2 has missing"),
        (lambda content: content["shards"][1].update(bytes="1"), "entry 2 has missing"),
        (lambda content: content["shards"][1].update(bytes=-1), "entry 2 has an invalid number"),
        (lambda content: content["shards"][1].update(sha256="x" * 64), "entry 2 has an invalid number"),
        (lambda content: content["shards"].reverse(), "entry 1 is 'cdx-00001.gz', not cdx-00000.gz"),
        (
            lambda content: content.update(
                change=1,
                origin="0" * 64,
                overlays=[{**content["shards"][0], "name": "../cdx-00000.gz"}],
            ),
            "is not an overlay of change 1",
        ),
        (lambda content: content["compressor"].update(library="other"), "unknown compressor 'other'"),
        (lambda content: content["compressor"].update(level=13), "unknown compressor 'zlib', level 13"),
        (lambda content: content["compressor"].pop("version"), "compressor has missing"),
        (lambda content: content.update(format=content.pop("format")), "not written as cdxmill writes it"),
    ],
)
def test_invalid_values_are_refused_though_the_checksum_matches(
    change: Callable[[dict[str, Any]], object], reason: str, content: dict[str, Any]
) -> None:
    change(content)
    with pytest.raises(ValueError, match=reason):
        parse_manifest(signed(content))


def test_another_layout_of_the_same_json_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not written as cdxmill writes it"):
        parse_manifest(json.dumps(content).encode())


def test_shards_have_names_of_changes_that_were_made() -> None:
    row = ShardEntry(shard_name(0, 2), 9, 1, 1, hashlib.sha256(b"").hexdigest())
    manifest = make_manifest([row], [], Compressor("zlib", 9), 3)._replace(change=2, origin=row.sha256)
    assert parse_manifest(format_manifest(manifest)) == manifest
    for wrong in (
        manifest._replace(change=1),
        manifest._replace(origin="x"),
        manifest._replace(shards=(row._replace(name="cdx-00001-2.gz"),)),
        manifest._replace(shards=(row._replace(name="cdx-00000-02.gz"),)),
    ):
        with pytest.raises(ValueError, match=r"change or origin|entry 1"):
            parse_manifest(format_manifest(wrong))


@pytest.mark.parametrize(
    ("made", "written", "is_right"),
    [(1, 1, True), (1, 2, True), (2, 3, True), (3, 3, True), (3, 2, False), (1, 4, False), (4, 4, False)],
)
def test_an_overlay_was_made_before_it_was_written_last(made: int, written: int, is_right: bool) -> None:
    shard = ShardEntry(shard_name(0), 9, 1, 1, hashlib.sha256(b"").hexdigest())
    overlay = shard._replace(name=overlay_name(made, written), lines=4, blocks=3)
    manifest = make_manifest([shard], [], Compressor("zlib", 9), 4)
    changed = manifest._replace(change=3, origin=shard.sha256, overlays=(overlay,))
    assert (changed.lines, changed.blocks, changed.files) == (1, 1, (shard, overlay))
    if is_right:
        assert parse_manifest(format_manifest(changed)) == changed
        return
    with pytest.raises(ValueError, match=f"'{overlay.name}' is not an overlay of change 3"):
        parse_manifest(format_manifest(changed))


def test_a_changed_cluster_keeps_its_origin_and_has_longer_blocks() -> None:
    built = make_manifest([ShardEntry(shard_name(0), 9, 1, 1, "0" * 64)], [], Compressor("zlib", 9), 5)
    assert origin_of(built) == json.loads(format_manifest(built))["sha256"]
    changed = built._replace(change=1, origin=origin_of(built))
    assert origin_of(changed) == origin_of(built)
    assert (most_lines(built), most_lines(changed)) == (5, 7)
