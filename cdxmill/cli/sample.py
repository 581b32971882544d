"""`cdxmill sample`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.cli.command import Printing, command
from cdxmill.errors import FAILED, OK
from cdxmill.options.clusters import Sampling, SplitsOutput
from cdxmill.options.option import path_list


@dataclass(kw_only=True, repr=False, eq=False)
class SampleArguments(Printing, Sampling):
    """The command line of `sample`."""

    output: Annotated[str, SplitsOutput] = field()


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
    from cdxmill.cluster.split_files import check_splits_absent, write_splits
    from cdxmill.commands.sample import sample_files
    from cdxmill.inputs.cdx_files import find_cdx_files
    from cdxmill.inputs.pipes import open_pipes
    from cdxmill.running.failures import Failures

    if not arguments.replace:
        check_splits_absent(arguments.output)
    failures = Failures()
    with open_pipes(failures, quiet=arguments.quiet) as pipes:
        paths = find_cdx_files(path_list(arguments.cdx), failures, pipes)
        points = sample_files(
            paths,
            arguments.shards,
            arguments.seed,
            arguments.processes,
            failures,
            arguments.quiet,
            arguments.fraction,
        )
    write_splits(points, arguments.output)
    return FAILED if failures.count else OK
