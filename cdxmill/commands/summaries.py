"""The closing lines of a command: what was done, what failed, what to do next."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cdxmill.commands.index import BESIDE, FAILURES
from cdxmill.running.failures import Failures
from cdxmill.running.progress import Summary
from cdxmill.running.quantities import count, human_bytes, human_seconds
from cdxmill.storage.choose import is_remote, join, local_path

if TYPE_CHECKING:
    from cdxmill.commands.build import BuildSummary
    from cdxmill.commands.publish import PublishSummary
    from cdxmill.commands.zipnum import ClusterSummary


def tell_index(summary: Summary, failures: Failures, output: str, quiet: bool) -> None:
    """What `index` did, on stderr."""
    if quiet:
        return
    if summary.files + summary.skipped == 0:
        _say("no archives found: nothing to index")
    skipped = f", {summary.skipped} skipped" if summary.skipped else ""
    what = f"{count(summary.captures, 'capture')} of {count(summary.files, 'archive')}"
    _say(f"{what} ({human_bytes(summary.bytes)}){skipped}")
    if failures.count:
        where = "" if output == "-" else f", listed in {_list_of(output)}"
        rest = "; the rest is indexed" if summary.captures else ""
        _say(f"{count(failures.count, 'failure')} in {count(len(failures.inputs), 'input')}{where}{rest}")


def _list_of(output: str) -> str:
    if is_remote(output):
        return join(output, f"_...{BESIDE}, beside the output of each")
    return join(local_path(output), FAILURES)


def tell_cluster(summary: ClusterSummary, folder: Path | str, quiet: bool) -> None:
    """What is in a cluster, on stderr."""
    if not quiet:
        size = f"{human_bytes(summary.bytes)}, {count(summary.duplicates, 'equal line')} collapsed"
        lines = f"{count(summary.lines, 'line')} in {count(summary.blocks, 'block')}"
        _say(f"{folder}: {lines}, {count(summary.shards, 'shard')}, {size}")


def tell_build(summary: BuildSummary, failures: Failures, folder: Path, quiet: bool) -> None:
    """What `build` did, on stderr."""
    if quiet:
        return
    tell_index(summary.indexed, failures, str(folder / "cdx"), quiet)
    tell_cluster(summary.cluster, folder, quiet)
    rate = human_bytes(summary.indexed.bytes / max(summary.seconds, 1e-6))
    _say(f"done in {human_seconds(summary.seconds)}, {rate} of archives a second")
    if summary.cluster.lines:
        _say(f"next: cdxmill lookup {folder} 'http://example.com/*', or serve it with pywb (conf/pywb)")


def tell_published(summary: PublishSummary, target: str, quiet: bool) -> None:
    """What `publish` did, on stderr."""
    if not quiet:
        size = f"{human_bytes(summary.bytes)}, {count(summary.blocks, 'block')}"
        _say(f"{target}: {count(summary.shards, 'shard')} ({size}), {summary.copied} copied")


def _say(text: str) -> None:
    print(text, file=sys.stderr)
