"""`cdxmill train-dictionary`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.cli.command import Printing, command, print_summary
from cdxmill.errors import FAILED, OK
from cdxmill.options.archives import ArchiveInputs, TrainOptions
from cdxmill.options.option import Option


@dataclass(kw_only=True, repr=False, eq=False)
class TrainDictionaryArguments(Printing, TrainOptions, ArchiveInputs):
    """The command line of `train-dictionary`."""

    output: Annotated[
        str,
        Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Dictionary to write: path, s3 or hdfs URL. FILE.json is written beside it.",
        ),
    ]


@command
def train_dictionary(arguments: TrainDictionaryArguments) -> int:
    """Train a Zstandard dictionary for archives.

    INPUT is a WARC or ARC file, directory, glob or URL. Give archives of one crawl and of one kind, such as WARC
    or WAT, and at least two of them. cdxmill reads all of them and takes a uniform sample of their records: 128 MiB at
    most, the first 128 KiB of each record. Some archives are held out, so the dictionary is not trained on
    them. cdxmill prints what it saves there.

    FILE is a dictionary that zstd and its libraries can read. FILE.json has its statistics.

    Examples:
        cdxmill train-dictionary -o crawl.dict warcs/
    """
    from cdxmill.commands.train_dictionary import train_dictionary as train
    from cdxmill.inputs.archives import find_archives
    from cdxmill.running.failures import Failures

    failures = Failures()
    print_summary(
        train(find_archives(arguments, failures), arguments.output, arguments, failures),
        quiet=arguments.quiet,
    )
    return FAILED if failures.count else OK
