"""The reports that the reducers of the ZipNum job have written beside their shards."""

from __future__ import annotations

from pathlib import Path

from cdxmill.commands.clusters.zipnum import ZipnumOptions
from cdxmill.errors import StoppedError
from cdxmill.formats.clusters.zipnum import shard_name
from cdxmill.jobs.nodes.zipnum import REPORT, ReducerReport


def read_reports(directory: Path, build: ZipnumOptions, cluster: str) -> list[ReducerReport]:
    """The reports in a directory, one for each shard. Raises StoppedError if one is missing, or has another compressor."""
    reports = sorted(ReducerReport.from_json(path.read_bytes()) for path in directory.glob(f"{REPORT}*"))
    names = [report.shard.name for report in reports]
    if names != [shard_name(number) for number in range(build.shards)]:
        raise StoppedError(
            f"{cluster}: only {len(reports)} of {build.shards} shards were written; run the job again"
        )
    versions = {report.compressor_version for report in reports}
    wanted = build.compressor.version()
    if versions != {wanted}:
        raise StoppedError(
            f"{cluster}: shards were compressed by {', '.join(sorted(versions))}, not by {wanted} as on this machine; "
            f"use --compressor libdeflate, or install the same library on all machines"
        )
    return reports
