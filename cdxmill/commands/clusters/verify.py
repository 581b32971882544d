"""verify: a ZipNum cluster -> its faults.

    claims      what cluster.json, the index and cluster.loc say about the shards
    shards      read whole and compared with the parts and the index
    beside      cluster.idx, cluster.summary, cluster.loc, split points, cluster.json
    against     the lines of CDX files
    archives    the records of the lines

With cluster.json every byte is checked. Without it lines, offsets and order are checked, and there is no proof that
the cluster is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cdxmill.checks.against import check_against, difference_findings
from cdxmill.checks.archives import check_archives
from cdxmill.checks.beside import (
    check_archive_index,
    check_complete,
    check_filters,
    check_indexes,
    check_locations,
    check_manifest,
    check_splits,
)
from cdxmill.checks.claims import (
    Claims,
    ClusterFiles,
    check_completeness,
    overlay_tasks,
    read_claims,
    shard_tasks,
)
from cdxmill.checks.shards import ReadShard, check_block_lines, check_order, read_shards
from cdxmill.checks.verify_run import VerifyRun, limited
from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.zipnum import ARCHIVES, MANIFEST
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.inputs.dictionaries import use_dictionary
from cdxmill.inputs.pipes import Pipes
from cdxmill.messages import count, human_bytes
from cdxmill.options.clusters import Verifying
from cdxmill.options.option import optional_path, required_paths
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import locate


class Verified(NamedTuple):
    """What the cluster contains, and what was checked.

    `exact`: every byte was compared with cluster.json. `compared`: the lines were compared with the input files.
    """

    shards: int
    lines: int
    blocks: int
    bytes: int
    exact: bool
    compared: bool
    records: int | None
    faults: int

    def __str__(self) -> str:
        """Return one line."""
        how = "every byte was checked"
        if not self.exact:
            how = f"lines, offsets and order were checked (a check of every byte needs {MANIFEST})"
            if not self.compared:
                how += "; it is not proven that the cluster is complete"
        lines = f"{count(self.lines, 'line')} in {count(self.blocks, 'block')}"
        also = ", lines compared with the inputs" if self.compared else ""
        if self.records is not None:
            also += f", {count(self.records, 'record')} read"
        found = f"; {count(self.faults, 'error')} found" if self.faults else ""
        return f"{lines}, {count(self.shards, 'shard')}, {human_bytes(self.bytes)}: {how}{also}{found}"


def verify(asked: Verifying, failures: Failures) -> Verified:
    """Check the cluster at a path or URL, and report its faults to `failures`.

    Raises UsageError if there is no cluster, InputError if nothing of it can be read.
    """
    use_dictionary(asked.dictionary)
    with Pipes(failures, quiet=asked.quiet) as pipes:
        against = None if asked.against is None else required_paths(asked.against)
        return _verify(asked, failures, against and find_cdx_files(against, failures, pipes))


def _verify(asked: Verifying, failures: Failures, inputs: list[str] | None) -> Verified:
    run = VerifyRun(asked.processes, failures, asked.quiet)
    files = ClusterFiles(locate(os.fspath(asked.cluster)), asked.shard_index_loc)
    archives = _archives_of(files, asked)
    claims = read_claims(files, run.report)
    found = read_shards([*shard_tasks(files, claims), *overlay_tasks(files, claims)], run)
    shards, overlays = found[: len(claims.shards)], found[len(claims.shards) :]
    order = list(check_order(shards))
    run.report(order)
    run.report(check_block_lines(shards))
    run.report(limited(_check_beside(files, claims, found, asked.location)))
    is_valid = not order and not any(shard.report.faults for shard in found)
    compared = False
    if inputs is not None and _can_compare(is_valid, failures):
        compared = True
        differences = check_against(shards, overlays, inputs, asked.convert, run)
        run.report(difference_findings(os.fspath(asked.cluster), differences))
    records = None
    if archives is not None:
        records = check_archives(found, archives, asked.sample, run)
    return _summary(claims, found, compared, records, failures.count)


def _archives_of(files: ClusterFiles, options: Verifying) -> ArchivePlaces | None:
    """Where the records are read; None if they are not. Raises UsageError if a sample is wanted and nothing says where."""
    if options.archives is not None:
        return ArchivePlaces(optional_path(options.archives))
    if options.sample is None:
        return None
    if not files.has(ARCHIVES):
        raise UsageError(f"{files.directory}: has no {ARCHIVES}, so --sample needs --archives LOCATION")
    return ArchivePlaces(None, files.directory)


def _check_beside(
    files: ClusterFiles, claims: Claims, shards: Sequence[ReadShard], location: str | None
) -> Iterator[Failure]:
    """Check the files beside the shards, except the parts. A file that cannot be read ends only its own check."""
    manifest = claims.manifest
    reports = {shard.task.name: shard.report for shard in shards}
    checks = [check_indexes(files), check_locations(files, reports, location, manifest is not None)]
    checks.append(check_archive_index(files))
    if manifest is not None:
        checks = [check_complete(files), *checks, check_manifest(files, manifest, reports)]
        checks += [check_splits(files, manifest, reports), check_filters(files, manifest)]
    elif not files.has(MANIFEST):
        checks.append(check_completeness(files, claims))
    for check in checks:
        try:
            yield from check
        except InputError as error:
            yield Failure.from_error(error)


def _can_compare(is_valid: bool, failures: Failures) -> bool:
    """Whether the lines can be compared with those of the inputs."""
    if not is_valid:
        failures.note(
            "note: lines were not compared with the inputs because some shards are corrupt or out of order"
        )
    return is_valid


def _summary(
    claims: Claims, shards: Sequence[ReadShard], compared: bool, records: int | None, faults: int
) -> Verified:
    reports = [shard.report for shard in shards]
    lines, blocks = sum(report.lines for report in reports), sum(report.blocks for report in reports)
    size = sum(report.size for report in reports)
    is_exact = claims.manifest is not None
    return Verified(len(reports), lines, blocks, size, is_exact, compared, records, faults)
