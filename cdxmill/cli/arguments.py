"""Arguments and options that at least two commands share: single ones, and groups as dataclasses.

The package's other modules are imported inside functions, so that the command starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cdxmill.cli.command import Argument, Option
from cdxmill.errors import UsageError

if TYPE_CHECKING:
    from cdxmill.commands.clusters.zipnum import ZipnumOptions
    from cdxmill.commands.per_archive.index_one import IndexOptions
    from cdxmill.formats.clusters.zipnum_block import Compressor
    from cdxmill.inputs.named import Input
    from cdxmill.inputs.pipes import Pipes
    from cdxmill.outputs.existing import Rule
    from cdxmill.running.failures import Failures
    from cdxmill.spark.engine import Engine

Quiet = Annotated[
    bool,
    Option("--quiet", "-q", help="Hide the progress and the summary. Failures are still reported."),
]
CdxFiles = Annotated[
    list[str],
    Argument(metavar="CDX...", help="CDX files, directories, globs, URLs or pipes; - is standard input."),
]
Seed = Annotated[int, Option(help="Seed of the random sample. The same seed gives the same split points.")]
ShardCount = Annotated[int, Option("--shards", "-s", min=1, help="Number of shards.")]
SplitsOutput = Annotated[
    str,
    Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Text file to write, such as splits.txt: path, s3 or hdfs URL. splits.seq is written beside it.",
    ),
]
Replace = Annotated[bool, Option("--replace", help="Replace an existing output.")]
ShardRule = Annotated[
    tuple[str, str] | None,
    Option(
        "--shard-index-loc",
        metavar="MATCH REPLACE",
        help="Location of the shards: the directory of the index, with the regular expression MATCH replaced by"
        " REPLACE. The same as shard_index_loc in pywb.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """How a command runs."""

    processes: Annotated[
        int, Option("--processes", "-p", min=0, help="Number of processes. 0: one per core.")
    ] = 0
    quiet: Quiet = False

    def process_count(self) -> int:
        """The number of processes, at least 1."""
        from cdxmill.running.processes import processes_by_default

        return self.processes or processes_by_default()


@dataclass(frozen=True, kw_only=True)
class ExistingArguments:
    """What happens to outputs of archives that exist."""

    update: Annotated[
        bool,
        Option(
            "--update",
            help="Write only what is missing, is older than its archive, or had failures. Keep all other outputs,"
            " whatever options they were written with.",
        ),
    ] = False
    replace: Replace = False

    def rule(self) -> Rule:
        """What happens to an output that exists. Raises UsageError."""
        from cdxmill.outputs.existing import Rule

        if self.update and self.replace:
            raise UsageError("--update and --replace cannot be used together")
        return Rule.UPDATE if self.update else Rule.REPLACE if self.replace else Rule.REFUSE


@dataclass(frozen=True, kw_only=True)
class EngineArguments(RunArguments):
    """Where the tasks of a command run."""

    engine: Annotated[
        str,
        Option(
            "--engine",
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
    ] = None

    @contextmanager
    def open_engine(self) -> Iterator[Engine | None]:
        """The engine on Spark; None for the local one. Raises UsageError."""
        if self.engine not in ("local", "spark"):
            raise UsageError(f"--engine {self.engine}: expected local or spark")
        if self.engine == "local":
            if self.master is not None:
                raise UsageError("--master needs --engine spark")
            yield None
            return
        from cdxmill.spark.engine import Engine, check_pyspark

        check_pyspark()
        with Engine(self.master or "", self.process_count(), quiet=self.quiet) as engine:
            yield engine


@dataclass(frozen=True, kw_only=True)
class ArchiveInputs:
    """Which archives are read."""

    inputs: Annotated[
        list[str] | None,
        Argument(
            metavar="INPUT...",
            help="Archives, WACZ files, directories (searched recursively), globs or URLs.",
        ),
    ] = None
    manifest: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="File or URL with a list of archives, one per line; - reads standard input. It may be gzipped."
            " The last tab-separated field of a line that is not empty is used. Blank lines and lines that start with # are"
            " skipped.",
        ),
    ] = None
    root: Annotated[
        str | None,
        Option(metavar="DIR", help="Directory or URL that relative paths in the manifest start from."),
    ] = None

    def archives(
        self, failures: Failures, pipes: Pipes | None = None, dir_root: str | None = None
    ) -> list[Input]:
        """The archives that the arguments name. File names in index lines are relative to `dir_root`.

        Raises UsageError, InputError.
        """
        from cdxmill.inputs.archives import Manifest, find_archives

        if not self.inputs and self.manifest is None:
            raise UsageError("no input; give archives, directories, or --manifest FILE")
        if self.root is not None and self.manifest is None:
            raise UsageError("--root needs --manifest")
        if pipes is not None and self.manifest == "-" and "-" in (self.inputs or []):
            raise UsageError("- can be an archive or the manifest, not both")
        manifest = None if self.manifest is None else Manifest(self.manifest, self.root or "")
        return find_archives(self.inputs or [], manifest, dir_root, failures, pipes)


@dataclass(frozen=True, kw_only=True)
class ArchiveArguments(ArchiveInputs):
    """Which archives are indexed, and their names in index lines."""

    dir_root: Annotated[
        str | None,
        Option(
            "--dir-root",
            "-d",
            metavar="DIR",
            help="Write file names in index lines relative to this directory.",
        ),
    ] = None

    def archives(
        self, failures: Failures, pipes: Pipes | None = None, dir_root: str | None = None
    ) -> list[Input]:
        """The archives that the arguments name. Raises UsageError, InputError."""
        return super().archives(failures, pipes, self.dir_root)


@dataclass(frozen=True, kw_only=True)
class LineArguments(EngineArguments):
    """Which records get an index line, and how the line looks."""

    cdx11: Annotated[
        bool, Option("--cdx11", "-11", help="Write CDX lines with 11 fields instead of CDXJ.")
    ] = False
    cdx9: Annotated[
        bool, Option("--cdx9", "--cdx09", "-9", help="Write CDX lines with 9 fields instead of CDXJ.")
    ] = False
    records: Annotated[
        str | None,
        Option(
            metavar="TYPES",
            help="Record types to index, comma-separated, or all."
            " Default: response, revisit, resource, metadata and conversion, except notes that a crawler"
            " writes about its own fetches.",
        ),
    ] = None
    post_append: Annotated[
        bool,
        Option("--post-append", help="Append the method and body of non-GET requests to the URL's key."),
    ] = False
    minimal: Annotated[
        bool, Option("--minimal", help="Omit status, redirect and mime (but keep mime of revisits).")
    ] = False
    unsurt: Annotated[
        bool,
        Option(
            "--unsurt",
            help="Write keys as host/path, without reversing the host. For old tools only: lookup cannot search"
            " such an index.",
        ),
    ] = False
    keep_www: Annotated[
        bool,
        Option("--keep-www", help="Keep www. in keys. pywb, OpenWayback and lookup expect keys without it."),
    ] = False

    def index_options(self, existing: Rule) -> IndexOptions:
        """The options of indexing. Raises UsageError."""
        from cdxmill.commands.per_archive.index_one import IndexOptions
        from cdxmill.stages.captures.capture_options import DEFAULT_RECORDS, CaptureOptions

        if self.cdx11 and self.cdx9:
            raise UsageError("--cdx11 and --cdx9 cannot be used together")
        if self.minimal and self.post_append:
            raise UsageError("--minimal and --post-append cannot be used together")
        captures = CaptureOptions(
            records=DEFAULT_RECORDS if self.records is None else _record_types(self.records),
            post_append=self.post_append,
            minimal=self.minimal,
            unsurt=self.unsurt,
            keep_www=self.keep_www,
        )
        return IndexOptions(
            captures=captures,
            line_format="cdx11" if self.cdx11 else "cdx9" if self.cdx9 else "cdxj",
            processes=self.process_count(),
            existing=existing,
            quiet=self.quiet,
        )


def _record_types(text: str) -> frozenset[bytes] | None:
    """The types of --records; None for all. Raises UsageError."""
    from cdxmill.stages.captures.capture_options import parse_record_types

    try:
        return parse_record_types(text.split(","))
    except ValueError as error:
        raise UsageError(f"--records: {error}") from None


def _cluster_place(text: str) -> str:
    from cdxmill.cluster.locations import local_directory
    from cdxmill.storage.choose import is_listed

    return text if is_listed(text) else str(local_directory(text))


@dataclass(frozen=True, kw_only=True)
class ClusterArguments(EngineArguments):
    """How a new cluster is built."""

    output: Annotated[
        str,
        Option("--output", "-o", metavar="CLUSTER", help="Directory of the cluster.", parser=_cluster_place),
    ]
    shards: Annotated[
        int | None,
        Option(
            "--shards",
            "-s",
            min=1,
            metavar="N",
            help="Number of shards. Default: that of --splits, or else one per 64 MiB of gzipped CDX files (a"
            " plain file counts a sixth), at most 300.",
        ),
    ] = None
    splits: Annotated[
        str | None,
        Option(metavar="FILE", help="Read the split points from this file or URL (text or SequenceFile)."),
    ] = None
    seed: Seed = 0
    numlines: Annotated[int, Option("--numlines", min=1, help="Lines per block.")] = 3000
    compressor: Annotated[
        str, Option("--compressor", help="Library that compresses the blocks: libdeflate or zlib.")
    ] = "libdeflate"
    level: Annotated[int, Option(min=1, max=12, help="Compression level. zlib: 9 at most.")] = 6
    location: Annotated[
        str | None,
        Option(
            metavar="BASE",
            help="Directory or URL of the shards to write to cluster.loc. Default: the absolute path of CLUSTER.",
        ),
    ] = None

    replace: Replace = False

    def local_output(self) -> Path:
        """The directory of the cluster. Raises UsageError if it is a URL: only Spark can write there."""
        from cdxmill.cluster.locations import local_directory

        return local_directory(self.output)

    def zipnum_options(self, *, convert: bool) -> ZipnumOptions:
        """The options of building a cluster. Raises UsageError."""
        from cdxmill.commands.clusters.zipnum import ZipnumOptions

        if self.engine == "local":
            self.local_output()  # before the inputs are searched
        compressor = self._compressor()
        points = self._split_points()
        return ZipnumOptions(
            shards=self.shards or (0 if points is None else len(points) + 1),
            points=points,
            block_lines=self.numlines,
            compressor=compressor,
            convert=convert,
            seed=self.seed,
            processes=self.process_count(),
            location=self.location,
            replace=self.replace,
            quiet=self.quiet,
        )

    def _compressor(self) -> Compressor:
        from cdxmill.formats.clusters.zipnum_block import checked_compressor

        try:
            return checked_compressor(self.compressor, self.level)
        except ValueError as error:
            raise UsageError(f"--compressor, --level: {error}") from None

    def _split_points(self) -> tuple[bytes, ...] | None:
        """The split points of --splits; None if they have to be found."""
        from cdxmill.inputs.split_files import read_splits

        if self.splits is None:
            return None
        points = tuple(read_splits(self.splits))
        if self.shards not in (None, len(points) + 1):
            raise UsageError(
                f"--shards {self.shards} does not match {self.splits}, which gives {len(points) + 1} shards;"
                " omit one of the two options"
            )
        return points
