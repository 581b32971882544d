"""`cdxmill zipnum`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass

from cdxmill.cli.command import EngineOptions, Printing, command, print_summary
from cdxmill.errors import FAILED, OK
from cdxmill.options.clusters import Zipnum
from cdxmill.options.option import path_list


@dataclass(kw_only=True, repr=False, eq=False)
class ZipnumArguments(Printing, Zipnum, EngineOptions):
    """The command line of `zipnum`."""


@command
def zipnum(arguments: ZipnumArguments) -> int:
    """Build a ZipNum cluster from CDX files.

    CDX is a file, directory, glob or URL. Files may be gzipped or plain, sorted or not. All files must have the
    same format: CDXJ, or CDX with the same number of fields. The cluster contains every distinct line once, in
    sorted order, in shards of gzip blocks with a secondary index. A corrupt file adds no lines, is reported,
    and does not affect other files.

    If CLUSTER is already the cluster of these files, nothing is done. If it is another cluster, --replace builds
    the new one beside it and switches at the end.

    Examples:
        cdxmill zipnum -o cluster cdx/
        cdxmill zipnum -o cluster-4 --splits splits.txt cdx/
        zcat cdx/*.gz | cdxmill zipnum -o cluster-1 -s 1 -
    """
    from dataclasses import replace

    from cdxmill.commands.clusters.next_step import next_lookup
    from cdxmill.commands.clusters.zipnum import build_cluster, output_place, zipnum_options
    from cdxmill.inputs.cdx_files import find_cdx_files
    from cdxmill.inputs.pipes import open_pipes
    from cdxmill.running.failures import Failures

    failures = Failures()
    place = output_place(arguments, is_local=arguments.engine == "local")
    options = zipnum_options(arguments, convert=arguments.convert)
    with open_pipes(failures, quiet=arguments.quiet) as pipes:
        paths = find_cdx_files(path_list(arguments.cdx), failures, pipes)
        with arguments.open_engine(arguments.processes, quiet=arguments.quiet) as engine:
            if engine is not None:
                from cdxmill.spark.jobs import Maker

                options = replace(options, make=Maker(engine))
            summary = build_cluster(paths, place, options, failures)
    if not arguments.quiet:
        next_step = next_lookup(place) if summary.new else ""
        print_summary(f"{place}: {summary}\n{next_step}".rstrip("\n"), quiet=False)
    return FAILED if failures.count else OK
