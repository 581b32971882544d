"""`cdxmill verify`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cdxmill.cli.arguments import RunArguments, ShardRule
from cdxmill.cli.command import Argument, Option, command
from cdxmill.cli.output import print_summary
from cdxmill.errors import FAILED, OK, UsageError

if TYPE_CHECKING:
    from cdxmill.commands.clusters.verify import VerifyOptions
    from cdxmill.running.failures import Failures


@dataclass(frozen=True, kw_only=True)
class VerifyArguments(RunArguments):
    """The command line of `verify`."""

    cluster: Annotated[
        str,
        Argument(
            metavar="CLUSTER",
            help="ZipNum cluster: directory, URL (http, https, s3, hdfs), or its .idx file.",
        ),
    ]
    more: Annotated[
        list[str] | None,
        Argument(metavar="CDX...", help="More files for --against."),
    ] = None
    against: Annotated[
        list[str] | None,
        Option(
            metavar="CDX",
            help="Compare the lines with the lines of these CDX files: file, directory, glob or URL. May be"
            " repeated.",
        ),
    ] = None
    convert: Annotated[
        bool,
        Option(
            "--convert", help="The files of --against have 6 fields, and CLUSTER was built with --convert."
        ),
    ] = False
    archives: Annotated[
        str | None,
        Option(
            "--archives",
            metavar="LOCATION",
            help="Read the record of every line. The archives are in this directory or WACZ, at this URL prefix, or"
            " listed in this path index (a text file; each line: file name, tab, path or URL).",
        ),
    ] = None
    sample: Annotated[
        int | None,
        Option(
            "--sample",
            min=1,
            metavar="N",
            help="Read the records of N random lines only. Default of --archives: the archives.tsv of CLUSTER.",
        ),
    ] = None
    location: Annotated[
        str | None,
        Option(
            "--location",
            metavar="BASE",
            help="Check that cluster.loc has BASE/SHARD as the first location of each shard. Default: check that"
            " the files at all locations exist.",
        ),
    ] = None
    shard_index_loc: ShardRule = None

    def options(self, failures: Failures) -> VerifyOptions:
        """The options of verifying. Raises UsageError, InputError."""
        from cdxmill.commands.clusters.verify import VerifyOptions
        from cdxmill.inputs.cdx_files import find_cdx_files

        if self.convert and self.against is None:
            raise UsageError("--convert needs --against")
        if self.more and self.against is None:
            raise UsageError(f"{self.more[0]}: unexpected argument; verify takes one cluster (see --against)")
        return VerifyOptions(
            against=None
            if self.against is None
            else find_cdx_files([*self.against, *(self.more or [])], failures),
            convert=self.convert,
            archives=self.archives,
            sample=self.sample,
            location=self.location,
            shard_rule=self.shard_index_loc,
            processes=self.process_count(),
            quiet=self.quiet,
        )


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

    failures = Failures()
    summary = verify_cluster(arguments.cluster, arguments.options(failures), failures)
    print_summary(f"{arguments.cluster}: {summary}", quiet=arguments.quiet)
    return FAILED if failures.count else OK
