"""A cluster without cluster.json: signs that it is not complete. That it is complete cannot be proven."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdxmill.checks.claims import Claims
from cdxmill.cluster.files import ClusterFiles
from cdxmill.formats.clusters.split_points import parse
from cdxmill.formats.clusters.zipnum_index import SHARD, shard_name
from cdxmill.inputs.split_files import SPLITS
from cdxmill.running.failures import Failure
from cdxmill.storage.location import locate

_UNFINISHED = re.compile(r"_temporary|_report-\d+|\.work|\.run-\d+|\.(?:cdx|part|cluster)[-.].*\.tmp")
"""Names that a run leaves in the directory of a cluster until it ends."""


def check_completeness(files: ClusterFiles, claims: Claims) -> Iterator[Failure]:
    """Look for leftovers of a run, for missing numbers of shards, and for another number of split points."""
    for name in sorted(files.names(_UNFINISHED))[:1]:
        reason = "a run that writes this cluster has not finished"
        yield Failure(
            files.path(name), None, reason, "run it again, or delete this file if it belongs to no run"
        )
    if not files.shards:  # elsewhere, or on a server without listings: empty shards are not known
        return
    numbers = {int(match[1]) for name in claims.shards if (match := SHARD.fullmatch(name))}
    for number in sorted(set(range(max(numbers, default=-1))) - numbers)[:1]:
        reason = f"is missing, but there is {shard_name(max(numbers))}"
        yield Failure(files.path(shard_name(number)), None, reason)
    yield from _check_points(files, claims)


def _check_points(files: ClusterFiles, claims: Claims) -> Iterator[Failure]:
    for name in filter(files.has, SPLITS):
        try:
            points = parse(locate(files.path(name)).read_bytes())
        except ValueError as error:
            yield Failure(files.path(name), None, str(error))
            continue
        if len(points) + 1 != len(claims.shards):
            reason = f"has split points for {len(points) + 1} shards, but {len(claims.shards)} were found"
            yield Failure(files.path(name), None, reason)
