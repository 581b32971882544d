"""The step of the index job on Hadoop."""

from __future__ import annotations

from cdxmill.errors import UsageError
from cdxmill.jobs.index_options import IndexJobOptions
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.hadoop_urls import hadoop_url, is_url
from cdxmill.jobs.launcher.mrjob_types import RunnerLike


def directory_url(directory: str, runner: RunnerLike) -> str:
    """The URL of a directory, as all nodes know it. Raises UsageError.

    A path is one of Hadoop's default file system. On EMR a name without a slash is a bucket.
    """
    if is_url(directory) or runner.alias != "emr":
        return hadoop_url(directory)
    if "/" in directory:
        raise UsageError(f"{directory}: not a URL; on EMR a directory is s3://BUCKET/DIR")
    return f"s3://{directory}"


def make_step(options: IndexJobOptions, work: WorkList) -> HadoopStep:
    """The step that indexes the archives on the work list."""
    scratch = ["--scratch", options.scratch] if options.scratch else []
    return HadoopStep(
        inputs=work,
        mapper=["index", *scratch],
        reducer=None,
        settings={
            "mapreduce.job.reduces": "0",
            "mapreduce.input.lineinputformat.linespermap": str(options.archives_per_mapper),
        },
        defaults={"mapreduce.map.maxattempts": "4"},
        output_dir=options.output_dir,
    )
