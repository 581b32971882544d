"""Options of indexwarcsjob.py, and what they mean."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mrjob.hadoop import fully_qualify_hdfs_path

from cdxmill.errors import UsageError
from cdxmill.inputs.named import Input
from cdxmill.inputs.output_names import output_names
from cdxmill.jobs.on_hadoop import HadoopStep, is_url

_CRAWL, _INDEX = "crawl-data/", "cc-index/cdx/"


def add_options(add: Callable[..., Any]) -> None:
    """Add the options, `add` being like argparse's add_argument."""
    add("--warc_bucket", default="", help="Folder or URL where relative paths of the manifest start.")
    add("--cdx_bucket", help="Folder or URL for the CDX files. Required.")
    add("--skip-existing", action="store_true", default=True, help="Keep finished CDX files: the default.")
    add("--no-skip-existing", dest="skip_existing", action="store_false", help="Make all of them again.")
    add("--s3_local_temp_dir", help="Folder for scratch files.")
    add("--warcs-per-map", type=int, default=1, help="Archives a mapper, on Hadoop.")
    add(
        "--max-failures",
        default="0",
        help="So many archives, or N%% of them, may have failures and the job still be a success.",
    )
    add(
        "--cc-index-paths",
        action="store_true",
        default=True,
        help="Index crawl-data/X to cc-index/cdx/X: the default.",
    )
    add(
        "--no-cc-index-paths",
        dest="cc_index_paths",
        action="store_false",
        help="Index crawl-data/X to crawl-data/X.",
    )


def cdx_folder(options: Namespace) -> str:
    """Where the CDX files go. Raises UsageError where that is not said, or other options are wrong."""
    if not options.cdx_bucket:
        raise UsageError("say where the CDX files go: --cdx_bucket FOLDER")
    if options.warcs_per_map < 1:
        raise UsageError("--warcs-per-map is a number from 1")
    allowed(options.max_failures, 1)
    return str(options.cdx_bucket)


def names_of(options: Namespace, archives: Sequence[Input]) -> dict[Input, str]:
    """The CDX file's name of each archive, below the folder. Raises UsageError."""
    names = output_names(archives)
    if not options.cc_index_paths:
        return names
    return {
        archive: _INDEX + name[len(_CRAWL) :] if name.startswith(_CRAWL) else name
        for archive, name in names.items()
    }


def allowed(max_failures: str, archives: int) -> int:
    """How many archives may fail. Raises UsageError where `max_failures` is neither a number nor a percentage."""
    number, percent = max_failures.removesuffix("%"), max_failures.endswith("%")
    if not (number.isdecimal() and number.isascii()):
        raise UsageError(f"--max-failures {max_failures}: it is a number of archives, or a percentage as 1%")
    return archives * int(number) // 100 if percent else int(number)


def as_url(folder: str, runner: Any) -> str:
    """A folder as all nodes understand it: a path is one of Hadoop's own file system, on EMR a bucket's name."""
    if is_url(folder):
        return folder
    if runner.alias != "emr":
        return str(fully_qualify_hdfs_path(folder))
    if "/" in folder:
        raise UsageError(f"{folder}: on EMR a folder is s3://BUCKET/FOLDER")
    return f"s3://{folder}"


def make_step(options: Namespace, listed: Path) -> HadoopStep:
    """The step that indexes what `listed` has, a line an archive."""
    scratch = ["--scratch", options.s3_local_temp_dir] if options.s3_local_temp_dir else []
    return HadoopStep(
        inputs=[str(listed)],
        mapper=["index", *scratch],
        reducer=None,
        settings={
            "mapreduce.job.reduces": "0",
            "mapreduce.input.lineinputformat.linespermap": str(options.warcs_per_map),
            "stream.map.input.ignoreKey": "true",
        },
        defaults={"mapreduce.map.maxattempts": "4"},
        input_format="org.apache.hadoop.mapred.lib.NLineInputFormat",
        output_dir=options.output_dir,
    )
