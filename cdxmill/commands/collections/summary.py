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
MOST_OVERLAYS = 7
"""With more overlays, pywb needs more than 4 times as long for a question."""
MOST_ADDED = 0.25
"""With more lines in overlays than this part of those in shards, prefix queries read much from them."""


class ChangeSummary(NamedTuple):
    """What a command did to a cluster, in lines; `shards` of all its `of` shards and overlays were written or deleted.

    `overlay` is why the lines became an overlay, or "". `folded` is the number of overlays whose lines moved to shards.
    """

    counts: Changes
    excluded: int
    shards: int
    of: int
    manifest: Manifest
    overlay: str = ""
    folded: int = 0
    what: str = "shard"

    @property
    def is_changed(self) -> bool:
        """Whether shards were written."""
        return bool(self.shards)

    def __str__(self) -> str:
        """Return one line."""
        counts, how = self.counts, f" as an overlay ({self.overlay})" if self.overlay else ""
        parts = [f"{count(counts.added, 'line')} added{how}"] if counts.added or not counts.removed else []
        if counts.removed:
            parts.append(f"{count(counts.removed, 'line')} removed")
        if counts.present:
            parts.append(f"{counts.present:,} were there already")
        if self.excluded:
            parts.append(f"{self.excluded:,} excluded")
        if not self.shards:
            return f"{', '.join(parts)}; unchanged"
        if self.overlay:
            return ", ".join(parts)
        if self.folded:
            parts = [f"{count(self.folded, 'overlay')} moved to the shards"]
        blocks = f"{count(counts.written, 'block')} written, {counts.copied:,} copied"
        return f"{', '.join(parts)}; {self.shards:,} of {count(self.of, self.what)} changed ({blocks})"


def summary_of(change: Change, done: Done, excluded: int = 0) -> ChangeSummary:
    """The summary of a change that is committed, or has nothing to commit."""
    old = change.manifest.files
    written = {_stem(one.name) for one in set(old) ^ set(done.shards)}
    manifest = read_manifest(change.place / MANIFEST)
    what = "file" if change.manifest.overlays else "shard"
    return ChangeSummary(done.counts, excluded, len(written), len(old), manifest, what=what)


def _stem(name: str) -> str:
    """What the names of a shard have in common, whichever change has written it."""
    return "-".join(name.removesuffix(".gz").split("-")[:2])


def advice(summary: ChangeSummary, cluster: object) -> str:
    """What to do next if there are many overlays, or more than 5 blocks where 4 would do. "" if nothing."""
    manifest = summary.manifest
    overlays, added = len(manifest.overlays), sum(one.lines for one in manifest.overlays)
    if overlays > MOST_OVERLAYS or added > manifest.lines * MOST_ADDED:
        lines = f"{count(overlays, 'overlay')} with {count(added, 'line')}"
        return f"note: {lines}, and {manifest.lines:,} in shards; run cdxmill compact {cluster}"
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
