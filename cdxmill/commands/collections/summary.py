"""What a change did: its closing lines, its row in the log, and whether the cluster should be compacted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from cdxmill.cluster.change import Change
from cdxmill.cluster.write import read_manifest
from cdxmill.commands.collections.change_shards import Done
from cdxmill.errors import AbsentError
from cdxmill.formats.clusters.manifest import Manifest
from cdxmill.formats.clusters.zipnum import MANIFEST
from cdxmill.messages import count
from cdxmill.outputs.time import output_time
from cdxmill.stages.zipnum.change_shard import Changes

LOG = "changes.jsonl"
"""The log beside a cluster: a line of JSON for each change."""
_SLACK, _FEW = 1.25, 16


class ChangeSummary(NamedTuple):
    """What a command did to a cluster, in lines; `shards` of all its `of` shards were written. Without them, nothing was."""

    counts: Changes
    excluded: int
    shards: int
    of: int
    manifest: Manifest

    @property
    def is_changed(self) -> bool:
        """Whether shards were written."""
        return bool(self.shards)

    def __str__(self) -> str:
        """Return one line."""
        counts = self.counts
        parts = [f"{count(counts.added, 'line')} added"] if counts.added or not counts.removed else []
        if counts.removed:
            parts.append(f"{count(counts.removed, 'line')} removed")
        if counts.present:
            parts.append(f"{counts.present:,} were there already")
        if self.excluded:
            parts.append(f"{self.excluded:,} excluded")
        if not self.shards:
            return f"{', '.join(parts)}; unchanged"
        blocks = f"{count(counts.written, 'block')} written, {counts.copied:,} copied"
        return f"{', '.join(parts)}; {self.shards:,} of {count(self.of, 'shard')} changed ({blocks})"


def summary_of(change: Change, done: Done, excluded: int = 0) -> ChangeSummary:
    """The summary of a change that is committed, or has nothing to commit."""
    old = change.manifest.shards
    written = sum(one != other for one, other in zip(done.shards, old, strict=True))
    manifest = read_manifest(change.place / MANIFEST)
    return ChangeSummary(done.counts, excluded, written, len(old), manifest)


def advice(summary: ChangeSummary, cluster: object) -> str:
    """What to do next if blocks have become too short: more than 5 blocks where 4 would do. "" if nothing."""
    manifest = summary.manifest
    least = sum(-(-shard.lines // manifest.numlines) for shard in manifest.shards)
    if manifest.blocks < _FEW or manifest.blocks <= least * _SLACK:
        return ""
    return f"note: {manifest.blocks:,} blocks, where {least:,} would do; run cdxmill compact {cluster}"


def logged(change: Change, command: str, done: Done, asked: Mapping[str, object]) -> bytes:
    """The log with a line for this change."""
    try:
        before = (change.place / LOG).read_bytes()
    except AbsentError:
        before = b""
    fields = {
        "change": change.number,
        "time": output_time(),
        "command": command,
        **{name: value for name, value in asked.items() if value},
        "added": done.counts.added,
        "removed": done.counts.removed,
    }
    return before + json.dumps(fields).encode() + b"\n"
