"""The options of indexwarcsjob.py."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from cdxmill.errors import UsageError
from cdxmill.jobs.launcher.mrjob_types import AddOption
from cdxmill.outputs.existing import Rule


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


@dataclass(frozen=True)
class IndexJobOptions:
    """The options of the index job. `archive_root` is "" if relative paths are used as they are."""

    manifests: tuple[str, ...]
    archive_root: str
    cdx_folder: str
    existing: Rule
    scratch: str | None
    archives_per_mapper: int
    max_failures: FailureLimit
    cc_index_paths: bool
    output_dir: str | None
    quiet: bool


def add_options(add: AddOption) -> None:
    """Add the options to a job."""
    add("--warc_bucket", default="", help="Directory or URL that relative paths of the manifest start from.")
    add("--cdx_bucket", help="Directory or URL to write the CDX files to. Required.")
    add(
        "--skip-existing",
        action="store_true",
        default=True,
        help="Skip archives with a finished CDX file. Default.",
    )
    add("--replace", action="store_true", help="Index all archives again.")
    add("--s3_local_temp_dir", help="Directory for scratch files.")
    add("--warcs-per-map", type=int, default=1, help="Number of archives per mapper, on Hadoop.")
    add(
        "--max-failures",
        default="0",
        help="On Hadoop, exit with status 0 if at most N archives (or N%% of them) have failures. Default: 0.",
    )
    add(
        "--cc-index-paths",
        action="store_true",
        default=True,
        help="Write the CDX file of crawl-data/X to cc-index/cdx/X. Default.",
    )
    add(
        "--no-cc-index-paths",
        dest="cc_index_paths",
        action="store_false",
        help="Write the CDX file of crawl-data/X to crawl-data/X.",
    )


def parse_options(options: Namespace) -> IndexJobOptions:
    """The options as one typed value. Raises UsageError if one is missing or invalid."""
    if not options.cdx_bucket:
        raise UsageError("--cdx_bucket is missing; give the directory or URL for the CDX files")
    if options.warcs_per_map < 1:
        raise UsageError(f"invalid --warcs-per-map {options.warcs_per_map}: expected a number >= 1")
    return IndexJobOptions(
        manifests=tuple(options.args),
        archive_root=options.warc_bucket,
        cdx_folder=options.cdx_bucket,
        existing=Rule.REPLACE if options.replace else Rule.UPDATE,
        scratch=options.s3_local_temp_dir,
        archives_per_mapper=options.warcs_per_map,
        max_failures=parse_limit(options.max_failures),
        cc_index_paths=options.cc_index_paths,
        output_dir=options.output_dir,
        quiet=options.quiet,
    )


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
