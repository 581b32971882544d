"""`cdxmill sample`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.cli.arguments import CdxFiles, Replace, RunArguments, Seed, ShardCount, SplitsOutput
from cdxmill.cli.command import Option, command
from cdxmill.errors import FAILED, OK


@dataclass(frozen=True, kw_only=True)
class SampleArguments(RunArguments):
    """The command line of `sample`."""

    cdx: CdxFiles
    output: SplitsOutput
    shards: ShardCount
    fraction: Annotated[
        float,
        Option(
            metavar="F",
            help="Read only this fraction of the files, chosen at random (see --seed). Above 0, at most 1.",
        ),
    ] = 1.0
    replace: Replace = False
    seed: Seed = 0


@command
def sample(arguments: SampleArguments) -> int:
    """Find split points in a random sample of CDX lines.

    CDX is a file, directory, glob or URL. Files may be gzipped or plain, sorted or not. The sample is taken in
    one pass. Every line has the same chance to be picked, in small and large files. The split points divide the
    lines into shards of about the same size. They are written twice: as text, one `<urlkey> <timestamp>` per
    line, and as a Hadoop SequenceFile, whose name ends in .seq.

    --fraction skips whole files. Use it if each file contains URLs of all kinds, as the index of an archive
    does. Do not use it if each file contains a range of keys, as a shard does.

    Examples:
        cdxmill sample -s 4 -o splits.txt cdx/
    """
    from cdxmill.commands.sample import sample_files
    from cdxmill.inputs.cdx_files import find_cdx_files
    from cdxmill.inputs.pipes import open_pipes
    from cdxmill.inputs.split_files import check_splits_absent, write_splits
    from cdxmill.running.failures import Failures

    if not arguments.replace:
        check_splits_absent(arguments.output)
    failures = Failures()
    with open_pipes(failures, quiet=arguments.quiet) as pipes:
        points = sample_files(
            find_cdx_files(arguments.cdx, failures, pipes),
            arguments.shards,
            arguments.seed,
            arguments.process_count(),
            failures,
            quiet=arguments.quiet,
            fraction=arguments.fraction,
        )
    write_splits(points, arguments.output)
    return FAILED if failures.count else OK
