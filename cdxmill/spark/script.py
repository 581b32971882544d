"""What the scripts for spark-submit share: options of cc-pyspark, paths as Hadoop writes them, exit statuses."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import NoReturn

from cdxmill.errors import INTERRUPTED, STOPPED, CdxmillError, UsageError
from cdxmill.running.start_script import exit_on_signals, fail
from cdxmill.spark.engine import Engine, check_pyspark
from cdxmill.storage.choose import join

_WITHOUT_HOST = re.compile(r"^(file|hdfs):/(?!/)", re.I)
_OLD_S3 = re.compile(r"^s3n://", re.I)
_IGNORED = ("--output_format", "--output_compression", "--output_option", "--log_level")


def make_parser(name: str, description: str, input_help: str) -> argparse.ArgumentParser:
    """A parser with the options that all jobs of cc-pyspark have."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("input", help=input_help)
    parser.add_argument(
        "output", nargs="?", default="", help="Name of a table. Not used: no table is written."
    )
    parser.add_argument(
        "--input_base_url", default="", help="Directory or URL that relative inputs start from."
    )
    parser.add_argument(
        "--num_input_partitions", type=int, default=0, help="Number of tasks that read inputs."
    )
    parser.add_argument("--local_temp_dir", default="", help="Directory of the nodes for temporary files.")
    parser.add_argument("--replace", action="store_true", help="Replace existing outputs.")
    parser.add_argument("--quiet", "-q", action="store_true", help="Print failures only.")
    for option in _IGNORED:
        parser.add_argument(option, action="append", help=argparse.SUPPRESS)
    parser.add_argument("--spark-profiler", action="store_true", help=argparse.SUPPRESS)
    return parser


def make_engine(options: argparse.Namespace) -> Engine:
    """Spark as spark-submit has it, or on this machine. Raises UsageError."""
    check_pyspark()
    if options.num_input_partitions < 0:
        raise UsageError(
            f"invalid --num_input_partitions {options.num_input_partitions}: expected a number >= 1"
        )
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
