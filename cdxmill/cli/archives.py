"""The command that makes an index of each archive: its help and the calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cdxmill.cli.command import open_engine, standard_output
from cdxmill.errors import UsageError
from cdxmill.options.archives import Indexing

if TYPE_CHECKING:
    from cdxmill.running.failures import Failures


def index(arguments: Indexing, failures: Failures) -> str:
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
    from cdxmill.inputs.archives import find_archives, open_here
    from cdxmill.inputs.pipes import Pipes
    from cdxmill.outputs.existing import rule_of
    from cdxmill.outputs.gone import note_of_gone, outputs_of_gone
    from cdxmill.outputs.names import is_one_file, output_names

    options, output = index_options(arguments, rule_of(arguments)), str(arguments.output)
    is_file = is_one_file(output)
    if is_file:
        _check_one_file(arguments, failures)
    with (
        open_engine(arguments) as spark,
        Pipes(failures, quiet=arguments.quiet) as pipes,
    ):
        if spark is not None and (is_file or output == "-"):
            raise UsageError("--engine spark needs an output directory")
        if spark is not None:
            options = replace(options, run=spark.run)
        open_all = open_here if spark is None else spark.open_all
        archives = find_archives(arguments, failures, pipes, open_all=open_all)
        if is_file:
            summary = index_to_file(archives, output, options, failures)
        elif output == "-":
            with standard_output() as out:
                summary = index_to_stream(archives, out, options, failures)
        else:
            names = output_names(archives)
            summary = index_to_directory(names, output, options, failures)
            if gone := outputs_of_gone(output, set(names.values())):
                failures.note(note_of_gone(output, gone))
    listed = "" if is_file or output == "-" else output
    step = _next_step(output, is_file=is_file) if summary.captures and not arguments.quiet else ""
    return "\n".join(filter(None, (summary.report(failures, listed), step)))


def _check_one_file(asked: Indexing, failures: Failures) -> None:
    """Check that the options fit to one output file. Raises UsageError."""
    if asked.update:
        raise UsageError("--update needs an output directory")
    is_cdxj = str(asked.output).lower().removesuffix(".gz").endswith(".cdxj")
    if asked.line_format != "cdxj" and is_cdxj:
        raise UsageError(
            f"{asked.output}: --{asked.line_format} writes no CDXJ; choose a name that ends in .cdx or .cdx.gz"
        )
    if asked.line_format == "cdxj" and not is_cdxj and not asked.quiet:
        failures.note(f"{asked.output}: note: the lines are CDXJ; for CDX lines, use --cdx11")


def _next_step(output: str, *, is_file: bool) -> str:
    """A line with a command that reads the output; "" for stdout."""
    if output == "-":
        return ""
    from cdxmill.commands.clusters.next_step import as_typed, next_lookup

    if is_file:
        return next_lookup(output)
    import shlex

    return f"next: {as_typed()} zipnum -o CLUSTER {shlex.quote(output)}"
