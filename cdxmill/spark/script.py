"""What the scripts for spark-submit share: options of cc-pyspark, paths as Hadoop writes them, exit statuses."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, NoReturn, TypeVar

from cdxmill.errors import INTERRUPTED, STOPPED, CdxmillError
from cdxmill.options.option import Argument, Option, Quiet, Replace
from cdxmill.options.table import add_options, read_options
from cdxmill.running.start_script import exit_on_signals, fail
from cdxmill.spark.engine import Engine, check_pyspark
from cdxmill.storage.location import join

_WITHOUT_HOST = re.compile(r"^(file|hdfs):/(?!/)", re.I)
_OLD_S3 = re.compile(r"^s3n://", re.I)
_Options = TypeVar("_Options")
_IGNORED = ("--output_format", "--output_compression", "--output_option", "--log_level")


@dataclass(kw_only=True, repr=False, eq=False)
class ScriptOptions:
    """The options that all jobs of cc-pyspark have."""

    input: Annotated[str, Argument("INPUT", "What is read. Several are separated by commas.")]
    output: Annotated[str, Argument("TABLE", "Name of a table. Not used: no table is written.")] = ""
    input_base_url: Annotated[
        str, Option("--input_base_url", help="Directory or URL that relative inputs start from.")
    ] = ""
    num_input_partitions: Annotated[
        int, Option("--num_input_partitions", min=0, help="Number of tasks that read inputs.")
    ] = 0
    local_temp_dir: Annotated[
        str, Option("--local_temp_dir", help="Directory of the nodes for temporary files.")
    ] = ""
    replace: Replace = False
    quiet: Quiet = False


def parse_options(kind: type[_Options], about: str, arguments: list[str]) -> _Options:
    """The options of a script, whose name and description are in `about`. Raises UsageError."""
    name, _, description = about.partition(": ")
    parser = argparse.ArgumentParser(prog=name, description=description)
    add_options(kind, parser.add_argument)
    for option in _IGNORED:
        parser.add_argument(option, action="append", help=argparse.SUPPRESS)
    parser.add_argument("--spark-profiler", action="store_true", help=argparse.SUPPRESS)
    return read_options(kind, parser.parse_args(arguments))


def make_engine(options: ScriptOptions) -> Engine:
    """Spark as spark-submit has it, or on this machine. Raises UsageError."""
    check_pyspark()
    return Engine("", 0, options.num_input_partitions, quiet=options.quiet)


def plain_url(url: str) -> str:
    """A path or URL as cdxmill writes it.

    >>> plain_url("file:/data/x"), plain_url("hdfs:/x"), plain_url("s3n://b/x"), plain_url("/data/")
    ('file:///data/x', 'hdfs:///x', 's3://b/x', '/data/')
    """
    return _OLD_S3.sub("s3://", _WITHOUT_HOST.sub(r"\1:///", url))


def below(base: str, path: str) -> str:
    """A path below a base URL, unless it is absolute.

    >>> below("s3://b/", "x/*.gz"), below("s3://b", "/data/x"), below("", "hdfs:/x")
    ('s3://b/x/*.gz', '/data/x', 'hdfs:///x')
    """
    path = plain_url(path)
    if not base or path.startswith("/") or "://" in path:
        return path
    return join(plain_url(base), path)


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Run a script as a command: print the reason of an error, and exit with the statuses of `cdxmill`."""
    exit_on_signals()
    sys.exit(_status(main))


def _status(main: Callable[[list[str]], int]) -> int:
    try:
        return main(sys.argv[1:])
    except CdxmillError as error:
        return fail(error, error.status)
    except OSError as error:
        return fail(error, STOPPED)
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED)
