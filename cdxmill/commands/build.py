"""build: archives -> a ZipNum cluster, in one command."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.index import IndexSummary, check_archives, index_to_folder
from cdxmill.commands.index_one import IndexOptions
from cdxmill.commands.zipnum import ClusterSummary, ZipnumOptions, build_cluster
from cdxmill.inputs.existing_outputs import Rule
from cdxmill.inputs.named import Input
from cdxmill.inputs.output_names import unique_names
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.running.quantities import human_bytes, human_seconds

CDX_FOLDER = "cdx"


class BuildSummary(NamedTuple):
    """What `build` did."""

    indexed: IndexSummary
    cluster: ClusterSummary
    seconds: float

    def report(self, failures: Failures, folder: Path) -> str:
        """Return the closing lines of a cluster that was built in `folder`."""
        rate = human_bytes(self.indexed.bytes / max(self.seconds, 1e-6))
        lines = [
            self.indexed.report(failures, str(folder / CDX_FOLDER)),
            f"{folder}: {self.cluster}",
            f"done in {human_seconds(self.seconds)}, {rate} of archives per second",
        ]
        if self.cluster.lines:
            lines.append(
                f"next: cdxmill lookup {folder} 'http://example.com/*', or serve it with pywb (conf/pywb)"
            )
        return "\n".join(lines)


def build(
    archives: Sequence[Input],
    folder: Path,
    index_options: IndexOptions,
    zipnum_options: ZipnumOptions,
    failures: Failures,
) -> BuildSummary:
    """Index `archives` to `folder`/cdx, and build the cluster of these indexes in `folder`.

    If a build was stopped, the same command, started again, indexes only what is missing.
    """
    start = time.monotonic()
    check_archives(archives)
    names = unique_names(archives)
    cdx = folder / CDX_FOLDER
    options = replace(index_options, existing=Rule.RENEW)
    with hold(folder, failures.note):
        summary = index_to_folder(names, cdx, options, failures)
        made = [str(cdx / name) for name in names.values() if (cdx / name).exists()]
        cluster = build_cluster(made, folder, zipnum_options, failures)
    return BuildSummary(summary, cluster, time.monotonic() - start)
