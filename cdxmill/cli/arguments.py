"""Options that only the command line has: progress and engine. All others are declared in `options/`.

The package's other modules are imported inside functions, so that the command starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cdxmill.errors import UsageError
from cdxmill.options.option import AnyPath, Needs, Option
from cdxmill.options.running import Quiet

if TYPE_CHECKING:
    from cdxmill.spark.engine import Engine


@dataclass(kw_only=True, repr=False, eq=False)
class Printing:
    """Whether the command prints its progress and its summary. It comes before the options that are quiet by default."""

    quiet: Quiet = False


@dataclass(kw_only=True, repr=False, eq=False)
class EngineOptions:
    """Where the tasks of a command run."""

    engine: Annotated[
        str,
        Option(
            choices=("local", "spark"),
            help="local: processes of this machine. spark: Apache Spark; the output may then be an s3 or hdfs URL.",
        ),
    ] = "local"
    master: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="Master of Spark, such as yarn or spark://HOST:7077. Default: that of spark-submit, or else this"
            " machine.",
        ),
        Needs("engine=spark"),
    ] = None

    @contextmanager
    def open_engine(self, processes: int, *, quiet: bool) -> Iterator[Engine | None]:
        """The engine on Spark; None for the local one. Raises UsageError."""
        if self.engine == "local":
            yield None
            return
        from cdxmill.spark.engine import Engine, check_pyspark

        check_pyspark()
        with Engine(self.master or "", processes, quiet=quiet) as engine:
            yield engine


def check_no_pipe(inputs: Iterable[AnyPath], reason: str) -> None:
    """Raise UsageError if one of the inputs is standard input."""
    if "-" in inputs:
        raise UsageError(reason)
