"""`cdxmill index`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdxmill.cli.command import EngineOptions, Printing, command, print_summary, standard_output
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.options.archives import Indexing

if TYPE_CHECKING:
    from cdxmill.commands.per_archive.index import IndexOptions
    from cdxmill.running.failures import Failures
    from cdxmill.spark.engine import Engine


@dataclass(kw_only=True, repr=False, eq=False)
class IndexArguments(Printing, Indexing, EngineOptions):
    """The command line of `index`."""

    def options_on(self, engine: Engine, options: IndexOptions, *, is_file: bool) -> IndexOptions:
        """The options with which Spark does the work. Raises UsageError."""
        from dataclasses import replace

        from cdxmill.spark.jobs import IndexRunner

        if is_file or self.output == "-":
            raise UsageError("--engine spark needs an output directory")
        return replace(options, run=IndexRunner(engine))

    def check_one_file(self, failures: Failures) -> None:
        """Check that the options fit to one output file. Raises UsageError."""
        if self.update:
            raise UsageError("--update needs an output directory")
        is_cdxj = str(self.output).lower().removesuffix(".gz").endswith(".cdxj")
        if self.line_format != "cdxj" and is_cdxj:
            raise UsageError(
                f"{self.output}: --{self.line_format} writes no CDXJ; choose a name that ends in .cdx or .cdx.gz"
            )
        if self.line_format == "cdxj" and not is_cdxj and not self.quiet:
            failures.note(f"{self.output}: note: the lines are CDXJ; for CDX lines, use --cdx11")


@command
def index(arguments: IndexArguments) -> int:
    """Index WARC and ARC files.

    INPUT is an archive, directory, glob, URL (http, https, s3, hdfs) or pipe (- is standard input). Archives are WARC, ARC, WAT or WET
    files, compressed with gzip or Zstandard or not compressed. A WACZ stands for the archives in it. If OUTPUT is a
    directory, cdxmill writes one .cdx.gz file per archive. It has the base name of the archive; the path below the
    directory that you named; or the path in the manifest. Otherwise all lines are written to one sorted file, or to
    stdout. The name of the file does not change the format of the lines.

    A record is indexed if its byte range contains exactly that record. Every other record is reported on
    stderr. It is also listed in OUTPUT/failures.tsv, or, if the directory is a URL, in a file beside the index,
    _NAME.failures. With one file or stdout, there is no list.

    If you run it again, outputs that are up to date are kept. cdxmill never overwrites any other output unless
    you say --update (index archives that are newer or failed) or --replace (index all again).

    Examples:
        cdxmill index -o cdx warcs/
        cdxmill index -o all.cdxj warcs/
        cdxmill index -o - warcs/ | head -n 3
    """
    from cdxmill.commands.per_archive.index import (
        index_options,
        index_to_directory,
        index_to_file,
        index_to_stream,
    )
    from cdxmill.inputs.archives import find_archives
    from cdxmill.inputs.pipes import open_pipes
    from cdxmill.outputs.existing import rule_of
    from cdxmill.outputs.names import is_one_file, output_names
    from cdxmill.running.failures import Failures

    failures = Failures()
    options, output = index_options(arguments, rule_of(arguments)), str(arguments.output)
    is_file = is_one_file(output)
    if is_file:
        arguments.check_one_file(failures)
    with (
        arguments.open_engine(arguments.processes, quiet=arguments.quiet) as engine,
        open_pipes(failures, quiet=arguments.quiet) as pipes,
    ):
        if engine is not None:
            options = arguments.options_on(engine, options, is_file=is_file)
        archives = find_archives(arguments, failures, pipes)
        if is_file:
            summary = index_to_file(archives, output, options, failures)
        elif output == "-":
            with standard_output() as out:
                summary = index_to_stream(archives, out, options, failures)
        else:
            summary = index_to_directory(output_names(archives), output, options, failures)
    listed = "" if is_file or output == "-" else output
    if not arguments.quiet:
        step = next_step(output, is_file=is_file) if summary.captures else ""
        lines = summary.report(failures, listed), step
        print_summary("\n".join(filter(None, lines)), quiet=False)
    return FAILED if failures.count else OK


def next_step(output: str, *, is_file: bool) -> str:
    """A line with a command that reads the output; "" for stdout."""
    if output == "-":
        return ""
    from cdxmill.commands.clusters.next_step import as_typed, next_lookup

    if is_file:
        return next_lookup(output)
    import shlex

    return f"next: {as_typed()} zipnum -o CLUSTER {shlex.quote(output)}"
