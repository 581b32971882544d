"""Options of commands that make one file of many archives: `count` and `train-dictionary`."""

from dataclasses import dataclass
from typing import Annotated

from cdxmill.options.option import Argument, Option
from cdxmill.options.running import Replace, Running


@dataclass(kw_only=True, repr=False, eq=False)
class CountOptions(Running):
    """What is counted, and how."""

    what: Annotated[str, Argument("WHAT", "What is counted.")]
    replace: Replace = False


@dataclass(kw_only=True, repr=False, eq=False)
class TrainOptions(Running):
    """How a dictionary is trained. Without `id`, its id depends on the content."""

    size: Annotated[
        int,
        Option(
            min=1,
            max=16384,
            metavar="N",
            help="Largest size of the dictionary, in KiB. It never gets larger than an eighth of the sample.",
        ),
    ] = 1024
    id: Annotated[
        int | None,
        Option(
            min=32768,
            max=2**31 - 1,
            metavar="N",
            help="Id of the dictionary. Default: computed from its content.",
        ),
    ] = None
    level: Annotated[
        int, Option(min=1, max=22, metavar="N", help="Level of the frames that will be written with it.")
    ] = 6
    seed: Annotated[int, Option(metavar="N", help="Seed of the random sample.")] = 0
    replace: Replace = False
