"""Options of several commands: how they run, and what happens to outputs that exist."""

from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.options.option import Excludes, Option

Quiet = Annotated[
    bool, Option("--quiet", "-q", help="Hide the progress and the summary. Failures are still reported.")
]
Replace = Annotated[bool, Option("--replace", help="Replace an existing output."), Excludes("output=-")]
Seed = Annotated[
    int,
    Option(help="Seed of the random sample. The same seed gives the same split points."),
    Excludes("splits"),
]
ShardRule = Annotated[
    tuple[str, str] | None,
    Option(
        "--shard-index-loc",
        metavar="MATCH REPLACE",
        help="Location of the shards: the directory of the index, with the regular expression MATCH replaced by"
        " REPLACE. The same as shard_index_loc in pywb.",
    ),
]


@dataclass(kw_only=True, repr=False, eq=False)
class Running:
    """How a command runs. Without a `quiet` of the command line, it shows no progress."""

    processes: Annotated[
        int, Option("--processes", "-p", min=0, help="Number of processes. 0: one per core.")
    ] = 0
    quiet: bool = field(default=True, init=False)


@dataclass(kw_only=True, repr=False, eq=False)
class Existing:
    """What happens to outputs of archives that exist. `outputs.existing.rule_of` makes a rule of it."""

    update: Annotated[
        bool,
        Option(
            help="Write only what is missing, is older than its archive, or had failures. Keep all other outputs,"
            " whatever options they were written with."
        ),
        Excludes("replace", "output=-"),
    ] = False
    replace: Replace = False
