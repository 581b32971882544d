"""How a command runs, and what happens to outputs that exist: the options of most commands."""

from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.options.option import Excludes, Option

Quiet = Annotated[
    bool,
    Option("--quiet", "-q", help="Hide the progress and the summary. Failures are still reported."),
]
Replace = Annotated[
    bool,
    Option(
        "--replace",
        help="Replace an existing output.",
    ),
    Excludes("output=-"),
]
Seed = Annotated[
    int,
    Option(
        help="Seed of the random sample. The same seed gives the same split points.",
    ),
    Excludes("splits"),
]


@dataclass(frozen=True, kw_only=True)
class Running:
    """How a command runs. Without a `quiet` of the command line, it shows no progress."""

    processes: Annotated[
        int, Option("--processes", "-p", min=0, help="Number of processes. 0: one per core.")
    ] = 0
    quiet: bool = field(default=True, init=False)


@dataclass(frozen=True, kw_only=True)
class Existing:
    """What happens to outputs of archives that exist. `outputs.existing.rule_of` makes a rule of it."""

    update: Annotated[
        bool,
        Option(
            "--update",
            help="Write only what is missing, is older than its archive, or had failures. Keep all other outputs,"
            " whatever options they were written with.",
        ),
        Excludes("replace", "output=-"),
    ] = False
    replace: Replace = False
