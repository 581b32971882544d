"""The base class of the jobs whose mappers read archives: IndexWARCJob and CountJob."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from cdxmill.errors import OK, UsageError
from cdxmill.inputs.archives import archives_of
from cdxmill.inputs.dictionaries import SENT, read_dictionary
from cdxmill.inputs.named import Input
from cdxmill.jobs.launcher.hadoop_directory import hadoop_url, is_url
from cdxmill.jobs.launcher.hadoop_step import HadoopStep, WorkList
from cdxmill.jobs.launcher.mrjob_parts import RunnerLike
from cdxmill.jobs.launcher.stream_job import StreamJob
from cdxmill.jobs.nodes.wacz_work import COUNTER
from cdxmill.options.option import DICTIONARY, AnyPath, Options, ReadBy, option
from cdxmill.running.failures import Failures
from cdxmill.storage.wacz import is_wacz


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


class ArchiveJobOptions(Options):
    """The options of jobs that read archives. `archive_root` is "" if relative paths are used as they are."""

    archive_root: str = option(
        "--warc_bucket", "Directory or URL that relative paths of the manifest start from.", default=""
    )
    scratch: str | None = option("--s3_local_temp_dir", "Directory for scratch files.", default=None)
    archives_per_mapper: int = option(
        "--warcs-per-map", "Number of archives per mapper, on Hadoop.", default=1, min=1
    )
    max_failures: FailureLimit = option(
        "--max-failures",
        "Exit with status 0 if at most N archives (or N% of them) have failures. Default: 0.",
        ReadBy(parse_limit),
        default=FailureLimit(0, False),
    )


_Asked = TypeVar("_Asked", bound=ArchiveJobOptions)


class ReadingJobOptions(ArchiveJobOptions):
    """The options of jobs that only read archives."""

    dictionary: AnyPath | None = DICTIONARY


class ArchiveJob(StreamJob[_Asked]):
    """Input: manifests. `total` is the number of archives on the work list."""

    total = 0

    @cached_property
    def failures(self) -> Failures:
        """The failures of the job."""
        return Failures()

    def listed(self) -> list[Input]:
        """The archives and WACZ files of the manifests. Raises UsageError, InputError."""
        return archives_of(self.options.args, self.own_options.archive_root)

    def count_listed(self, archives: Iterable[Input]) -> None:
        """Note how many archives are on the work list. Those in WACZ files are counted by the tasks."""
        self.total = sum(not is_wacz(archive.path) for archive in archives)

    def use_root(self, runner: RunnerLike) -> None:
        """Let relative paths start from a URL on EMR; on other clusters, it may be a path that exists on all nodes."""
        root = self.own_options.archive_root
        if root and runner.alias == "emr":
            self.own_options = replace(self.own_options, archive_root=directory_url(root, runner))

    def archive_step(
        self,
        work: WorkList,
        mapper: list[str],
        reducer: list[str] | None = None,
        files: Mapping[str, Path] = MappingProxyType({}),
    ) -> HadoopStep:
        """The step on Hadoop. Each mapper gets some lines of the work list."""
        options = self.own_options
        lines = {"mapreduce.input.lineinputformat.linespermap": str(options.archives_per_mapper)}
        return HadoopStep(
            inputs=work,
            mapper=[*mapper, "--scratch", options.scratch] if options.scratch else mapper,
            reducer=reducer,
            settings=lines if reducer else {**lines, "mapreduce.job.reduces": "0"},
            defaults={"mapreduce.map.maxattempts": "4", "mapreduce.job.reduces": "1"},
            output_dir=self.options.output_dir,
            files=files,
        )

    def status_of(self, runner: RunnerLike, done: str, more: str = "") -> int:
        """Print how many archives were `done`. Returns the exit status: 0 if no more failed than --max-failures allows."""
        failed = len(self.failures.inputs)
        total = max(self.total + counted(runner, COUNTER), failed)
        self.tell(f"{total - failed} of {total} archives {done}, {failed} with failures{more}")
        return OK if failed <= self.own_options.max_failures.of(total) else self.failures.status


def sent_dictionary(path: AnyPath | None, directory: Path) -> dict[str, Path]:
    """The file with the dictionary that each task gets, if there is one; it is written in `directory`. Raises UsageError."""
    if path is None:
        return {}
    (directory / SENT).write_bytes(read_dictionary(path))
    return {SENT: directory / SENT}


def counted(runner: RunnerLike, name: str) -> int:
    """A counter of cdxmill, over all tasks."""
    return sum(counters.get("cdxmill", {}).get(name, 0) for counters in runner.counters())


def directory_url(directory: str, runner: RunnerLike) -> str:
    """The URL of a directory, as all nodes know it. Raises UsageError.

    A path is one of Hadoop's default file system. On EMR a name without a slash is a bucket.
    """
    if is_url(directory) or runner.alias != "emr":
        return hadoop_url(directory)
    if "/" in directory:
        raise UsageError(f"{directory}: not a URL; on EMR a directory is s3://BUCKET/DIR")
    return f"s3://{directory}"
