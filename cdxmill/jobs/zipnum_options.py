"""The options of zipnumclusterjob.py."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.commands.clusters.zipnum import ZipnumOptions, zipnum_options
from cdxmill.errors import UsageError
from cdxmill.options.clusters import ClusterOptions, Convert
from cdxmill.options.option import Option
from cdxmill.options.table import read_options


@dataclass(kw_only=True, repr=False, eq=False)
class ZipnumJobArguments(ClusterOptions):
    """The command line of the ZipNum job."""

    splits: Annotated[
        str,
        Option("--splitfile", help="Split points: a SequenceFile or text file, as dosample.py writes them."),
    ] = field()
    zipnum_dir: Annotated[str | None, Option(help="Directory of the cluster. Default: --output-dir.")] = None
    shards: Annotated[
        int | None, Option(help="Expected number of shards. An error if the split file gives another number.")
    ] = None
    convert: Convert = False
    seed: int = field(default=0, init=False)
    processes: int = field(default=1, init=False)


@dataclass(frozen=True)
class ZipnumJobOptions:
    """The options of the ZipNum job.

    `directory` is the path or URL of the cluster's directory. `parts_directory` gets a copy of the
    parts, on Hadoop. `points` are the split points, and `build` is how the shards are written.
    """

    inputs: tuple[str, ...]
    directory: str
    parts_directory: str | None
    points: tuple[bytes, ...]
    build: ZipnumOptions
    quiet: bool


def parse_options(options: Namespace) -> ZipnumJobOptions:
    """The options as one typed value. Reads the split file. Raises UsageError."""
    asked = read_options(ZipnumJobArguments, options)
    directory = asked.zipnum_dir or options.output_dir
    if not directory:
        raise UsageError("--zipnum-dir is missing; give the directory of the cluster")
    build = zipnum_options(asked, asked.convert)
    return ZipnumJobOptions(
        inputs=tuple(options.args),
        directory=directory,
        parts_directory=options.output_dir if asked.zipnum_dir else None,
        points=build.points or (),
        build=build,
        quiet=options.quiet,
    )
