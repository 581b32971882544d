"""The summary of a change and its row in the log: what was written, and what was asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdxmill.cluster.change import Change
from cdxmill.commands.collections.change_shards import Done
from cdxmill.commands.collections.summary import LOG, ChangeSummary, logged, summary_of
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, UsedCompressor, format_manifest
from cdxmill.formats.clusters.zipnum import MANIFEST
from cdxmill.stages.zipnum.change_shard import Changes
from cdxmill.storage.location import locate


def entries(*names: str) -> list[ShardEntry]:
    return [ShardEntry(name, 9, 5, 3, "0" * 64) for name in names]


def manifest(*names: str) -> Manifest:
    shards = tuple(one for one in entries(*names) if one.name.startswith("cdx"))
    overlays = tuple(one for one in entries(*names) if one not in shards)
    return Manifest(shards, 2, UsedCompressor("zlib-ng", "2", 5, 0), "0" * 64, 9, "0" * 64, overlays=overlays)


@pytest.mark.parametrize(
    ("old", "new", "written", "what"),
    [
        (["cdx-00000.gz", "cdx-00001.gz"], ["cdx-00000.gz", "cdx-00001.gz"], 0, "shard"),
        (["cdx-00000.gz", "cdx-00001.gz"], ["cdx-00000.gz", "cdx-00001-1.gz"], 1, "shard"),
        (["cdx-00000-3.gz", "cdx-00001.gz"], ["cdx-00000-4.gz", "cdx-00001-4.gz"], 2, "shard"),
        (["cdx-00000.gz"], ["cdx-00000.gz", "overlay-00001-1.gz"], 1, "shard"),
        (["cdx-00000.gz", "overlay-00001-1.gz"], ["cdx-00000.gz", "overlay-00001-2.gz"], 1, "file"),
        (["cdx-00000.gz", "overlay-00001-1.gz"], ["cdx-00000.gz"], 1, "file"),
        (["cdx-00000.gz", "overlay-00000-1.gz"], ["cdx-00000-2.gz"], 2, "file"),
    ],
)
def test_a_file_that_is_written_again_or_deleted_counts_once(
    old: list[str], new: list[str], written: int, what: str, tmp_path: Path
) -> None:
    place = locate(str(tmp_path))
    with (place / MANIFEST).write_atomic() as file:
        file.write(format_manifest(manifest(*new)))
    done = Done(entries(*new), Changes(added=2), [])
    found = summary_of(Change(place, manifest(*old), [], 1), done, 7)
    assert (found.counts, found.excluded, found.shards, found.of, found.what) == (
        Changes(added=2), 7, written, len(old), what,
    )  # fmt: skip
    assert [one.name for one in found.manifest.files] == new
    assert found.is_changed == bool(written)
    assert isinstance(found, ChangeSummary)


def test_the_log_gets_a_row_with_what_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    change = Change(locate(str(tmp_path)), manifest("cdx-00000.gz"), [], 7)
    done = Done([], Changes(added=2, removed=3), [])
    asked: dict[str, object] = {
        "inputs": 1,
        "excluded": 0,
        "from": None,
        "queries": [],
        "keys": "",
        "to": "2020",
    }
    row = logged(change, "add", done, asked)
    wanted = '{"change": 7, "time": "20231114221320", "command": "add", "inputs": 1, "to": "2020", "added": 2, "removed": 3}\n'
    assert row.decode() == wanted
    (tmp_path / LOG).write_bytes(b"before\n")
    assert logged(change, "add", done, asked).decode() == f"before\n{wanted}"
    assert json.loads(row)["added"] == 2
