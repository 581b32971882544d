"""`cdxmill verify`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from cdxmill.cli.command import Printing, command, print_summary
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.options.clusters import Verifying
from cdxmill.options.option import Argument, path_list


@dataclass(kw_only=True, repr=False, eq=False)
class VerifyArguments(Printing, Verifying):
    """The command line of `verify`."""

    more: Annotated[list[str] | None, Argument("CDX...", "More files for --against.")] = None


@command
def verify(arguments: VerifyArguments) -> int:
    """Check a cluster for errors.

    CLUSTER may be built by cdxmill or by another tool. With its cluster.json, every changed byte is
    detected. Without it, corrupt blocks, wrong offsets and a wrong order are detected, but missing shards or
    blocks may not be: nothing proves that the cluster is complete. Errors are reported on stderr, one per
    line. With --against CDX the cluster must contain exactly the lines of these files.

    Examples:
        cdxmill verify cluster
        cdxmill verify cluster --against cdx/
    """
    from cdxmill.commands.clusters.verify import verify as verify_cluster
    from cdxmill.running.failures import Failures

    more = arguments.more or []
    if more and arguments.against is None:
        raise UsageError(f"{more[0]}: unexpected argument; verify takes one cluster (see --against)")
    if arguments.against is not None:
        arguments = replace(arguments, against=[*path_list(arguments.against), *more])
    failures = Failures()
    summary = verify_cluster(str(arguments.cluster), arguments, failures)
    print_summary(f"{arguments.cluster}: {summary}", quiet=arguments.quiet)
    return FAILED if failures.count else OK
