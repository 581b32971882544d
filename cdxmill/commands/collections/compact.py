"""compact: a cluster after many changes, with its overlays -> the shards of a rebuild."""

from __future__ import annotations

import os

from cdxmill.cluster.change import changed_record, delete_kept, open_change
from cdxmill.commands.collections.add_lines import overlay_runs
from cdxmill.commands.collections.change_shards import ChangeWanted, change_shards, work_directory
from cdxmill.commands.collections.summary import LOG, ChangeSummary, logged, summary_of
from cdxmill.options.collections import Compacting
from cdxmill.running.failures import Failures
from cdxmill.stages.zipnum.change_shard import ChangeRule


def compact(asked: Compacting, failures: Failures) -> ChangeSummary:
    """Write the shards that were changed again, with full blocks: the bytes that a build of the same lines gives them.

    Lines of overlays move to the shards.

    Raises UsageError if there is no cluster, InputError if it is corrupt, StoppedError if it cannot be written.
    """
    with open_change(os.fspath(asked.cluster), failures.note) as change, work_directory(change) as scratch:
        delete_kept(change.place, asked.keep_old)
        rule = ChangeRule(change.manifest.numlines, recut=True)
        runs = overlay_runs(change, scratch)
        wanted = ChangeWanted(runs=runs, rule=rule, processes=asked.processes, quiet=asked.quiet)
        done = change_shards(change, wanted, scratch)
        shards = done.shards[: len(change.manifest.shards)]
        done = done._replace(shards=shards, counts=done.counts._replace(added=0, present=0))
        if done.shards != list(change.manifest.files):
            record = changed_record(change.place, change.number, [], [])
            change.commit(done.shards, record, {LOG: logged(change, "compact", done, {})})
    return summary_of(change, done)._replace(folded=len(change.manifest.overlays))
