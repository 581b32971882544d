"""What the jobs that read archives share: their options, and the step of the index job on Hadoop."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Annotated

from cdxmill.errors import UsageError
from cdxmill.jobs.launcher.hadoop_directory import hadoop_url, is_url
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike
from cdxmill.options.option import Existing, Option
from cdxmill.options.table import read_options
from cdxmill.outputs.existing import Rule, rule_of


@dataclass(frozen=True)
class FailureLimit:
    """How many archives may have failures: a number, or a percentage of all archives."""

    number: int
    is_percentage: bool

    def of(self, archives: int) -> int:
        """The limit for this number of archives.

        >>> FailureLimit(1, True).of(250), FailureLimit(3, False).of(250)
        (2, 3)
        """
        return archives * self.number // 100 if self.is_percentage else self.number


def parse_limit(text: str) -> FailureLimit:
    """A number or a percentage. Raises UsageError.

    >>> parse_limit("3"), parse_limit("1%")
    (FailureLimit(number=3, is_percentage=False), FailureLimit(number=1, is_percentage=True))
    """
    number = text.removesuffix("%")
    if not (number.isdecimal() and number.isascii()):
        raise UsageError(
            f"invalid --max-failures {text}: expected a number of archives, or a percentage like 1%"
        )
    return FailureLimit(int(number), text.endswith("%"))


@dataclass(kw_only=True, repr=False, eq=False)
class ArchiveJobOptions:
    """The options of jobs that read archives. `archive_root` is "" if relative paths are used as they are."""

    archive_root: Annotated[
        str, Option("--warc_bucket", help="Directory or URL that relative paths of the manifest start from.")
    ] = ""
    scratch: Annotated[str | None, Option("--s3_local_temp_dir", help="Directory for scratch files.")] = None
    archives_per_mapper: Annotated[
        int, Option("--warcs-per-map", min=1, help="Number of archives per mapper, on Hadoop.")
    ] = 1
    max_failures: Annotated[
        FailureLimit,
        Option(
            help="Exit with status 0 if at most N archives (or N% of them) have failures. Default: 0.",
            parser=parse_limit,
        ),
    ] = FailureLimit(0, False)


@dataclass(kw_only=True, repr=False, eq=False)
class IndexJobOptions(ArchiveJobOptions, Existing):
    """The options of the index job."""

    cdx_directory: Annotated[str, Option("--cdx_bucket", help="Directory or URL to write the CDX files to.")]
    update: Annotated[
        bool, Option("--skip-existing", help="Skip archives with a finished CDX file. Default.")
    ] = True
    replace: Annotated[bool, Option(help="Index all archives again.")] = False
    cc_index_paths: Annotated[
        bool,
        Option(help="Write the CDX file of crawl-data/X to cc-index/cdx/X. Default."),
        Option("--no-cc-index-paths", help="Write the CDX file of crawl-data/X to crawl-data/X."),
    ] = True
    manifests: tuple[str, ...]
    output_dir: str | None
    quiet: bool

    @property
    def existing(self) -> Rule:
        """What happens to CDX files that exist."""
        return rule_of(self)


def parse_options(options: Namespace) -> IndexJobOptions:
    """The options as one typed value. Raises UsageError if one is missing or invalid."""
    own = {"manifests": tuple(options.args), "output_dir": options.output_dir, "quiet": options.quiet}
    return read_options(IndexJobOptions, options, **own)


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
