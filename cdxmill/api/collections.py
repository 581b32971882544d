"""Functions that change a cluster, or make one of several."""

from __future__ import annotations

from cdxmill.api.calls import takes
from cdxmill.api.results import ChangeResult, ClusterResult, result_of
from cdxmill.commands.collections import add as add_command
from cdxmill.commands.collections import compact as compact_command
from cdxmill.commands.collections import merge as merge_command
from cdxmill.commands.collections import remove as remove_command
from cdxmill.commands.collections.summary import ChangeSummary
from cdxmill.options.collections import Adding, Compacting, Merging, Removing
from cdxmill.running.failures import Failures


@takes(Adding)
def add(asked: Adding) -> ChangeResult:
    """Add archives, or with `cdx` CDX files and clusters, to the cluster at a path or URL, while others read it.

    Lines that the cluster has already are not added. Archives that were not added are in the failures of the result. Raises
    UsageError for invalid arguments, InputError if the cluster is corrupt, StoppedError if it cannot be written.
    """
    failures = Failures(printed=False)
    return _result(add_command.add(asked, failures), failures)


@takes(Removing)
def remove(asked: Removing) -> ChangeResult:
    """Remove the captures of `queries`, `keys`, `archives` or a time range from a cluster, and from the disk.

    With `dry_run`, nothing is changed. Raises as `add` does.
    """
    failures = Failures(printed=False)
    return _result(remove_command.remove(asked, failures), failures)


@takes(Compacting)
def compact(asked: Compacting) -> ChangeResult:
    """Write the changed shards of a cluster again, as a build of the same lines writes them. Raises as `add` does."""
    failures = Failures(printed=False)
    return _result(compact_command.compact(asked, failures), failures)


@takes(Merging)
def merge(asked: Merging) -> ClusterResult:
    """Make the cluster of all lines of `clusters` in the directory `output`. Raises as `zipnum` does."""
    failures = Failures(printed=False)
    return result_of(ClusterResult, merge_command.merge(asked, failures), failures)


def _result(done: ChangeSummary, failures: Failures) -> ChangeResult:
    counts = done.counts
    return ChangeResult(
        counts.added, counts.present, done.excluded, counts.removed, done.shards, failures.items
    )
