"""The commands that write one output per archive: their options, their help and the calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cdxmill.cli.command import check_no_pipe, open_engine, standard_output
from cdxmill.errors import InputError, UsageError
from cdxmill.options.archives import ArchiveInputs, Indexing
from cdxmill.options.option import REPLACE, Excludes, Existing, Needs, Running, argument, option

if TYPE_CHECKING:
    from cdxmill.commands.per_archive.recompress import RecompressOptions
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
    from cdxmill.inputs.archives import find_archives
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
        archives = find_archives(arguments, failures, pipes)
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


HIGHEST_LEVELS = {"zst": 22, "gz": 12}


class RecompressArguments(ArchiveInputs, Existing, Running):
    """The command line of `recompress`."""

    output: str = option("--output -o DIR", "Directory, s3 or hdfs URL for the new archives.")
    to: str = option("--to FORMAT", "Format to write: zst or gz.", default="zst", choices=("zst", "gz"))
    dictionary: str | None = option(
        "--dictionary FILE",
        "zstd dictionary, path or URL, from cdxmill train-dictionary. It becomes a part of each new archive.",
        Needs("to=zst"),
        default=None,
    )
    level: int = option("--level", "Compression level. gz: 12 at most.", default=6, min=1, max=22)
    max_window: int = option(
        "--max-window N",
        "Read Zstandard frames that need a window of at most N MiB. Each process may need that much memory.",
        default=128,
        min=8,
        max=2048,
    )
    group: bool = option(
        "--group",
        "Compress the request, the response and the metadata of a capture together. The archive is smaller, but"
        " breaks the specification: no reader can get a single one of these records, and cdxmill cannot index it.",
        Excludes("index", "offsets"),
        default=False,
    )
    index: bool = option(
        "--index", "Write the CDXJ index of each new archive, too, beside it.", default=False
    )
    offsets: bool = option(
        "--offsets",
        "Write a table of the old and the new offsets beside each new archive, too, for cdxmill reindex.",
        default=False,
    )

    def options(self) -> RecompressOptions:
        """How archives are written again. Raises UsageError."""
        from cdxmill.commands.per_archive.recompress import RecompressOptions
        from cdxmill.outputs.existing import rule_of

        if self.level > HIGHEST_LEVELS[self.to]:
            raise UsageError(f"--level: {self.to} has levels 1 to {HIGHEST_LEVELS[self.to]}")
        return RecompressOptions(
            to=self.to,
            level=self.level,
            dictionary=self._dictionary(),
            group=self.group,
            max_window=self.max_window << 20,
            index=self.index,
            offsets=self.offsets,
            processes=self.processes,
            existing=rule_of(self),
            quiet=self.quiet,
        )

    def _dictionary(self) -> bytes:
        if self.dictionary is None:
            return b""
        from cdxmill.formats.archives.zstd_dictionary import dictionary_id
        from cdxmill.storage.location import locate

        try:
            data = locate(self.dictionary).read_bytes()
            dictionary_id(data)
        except InputError as error:
            raise UsageError(f"--dictionary: {error}") from None
        except ValueError as error:
            hint = "make one with cdxmill train-dictionary"
            raise UsageError(f"--dictionary: {self.dictionary}: {error}; {hint}") from None
        return data


def recompress(arguments: RecompressArguments, failures: Failures) -> str:
    """Write archives again, compressed as Zstandard or as gzip.

    INPUT is an archive, directory, glob or URL (http, https, s3, hdfs). cdxmill writes one archive per input, with
    the same relative path; .gz in the name becomes .zst, and the other way round. Its records have the same bytes and the
    same order. Each record is in a member or frame of its own, whatever it was in before. So cdxmill also repairs
    archives that are compressed in one piece, or in blocks.

    A corrupt or truncated record is skipped, and reported on stderr and in DIR/failures.tsv, or, if DIR is a URL, in
    a file beside the output, _NAME.failures. Each record that is written is decompressed again and compared.

    If you run it again, outputs that are up to date are kept. cdxmill never overwrites any other output unless
    you say --update (write archives that are newer or failed) or --replace (write all again).

    Examples:
        cdxmill recompress -o zst warcs/
        cdxmill recompress --to gz -o gz zst/
        cdxmill recompress -o moved --offsets warcs/
    """
    from cdxmill.commands.per_archive.recompress import recompress
    from cdxmill.inputs.archives import find_archives
    from cdxmill.outputs.names import output_names, recompressed_name
    from cdxmill.outputs.record import without_outputs

    check_no_pipe(arguments.inputs, "an archive from a pipe has no name for its output; give a file")
    options = arguments.options()
    archives, to = find_archives(arguments, failures), arguments.to
    archives = without_outputs(archives, arguments.output, failures.note)
    names = output_names(archives, lambda path: recompressed_name(path, to), f".{to}")
    return str(recompress(names, arguments.output, options, failures))


class ReindexArguments(Running):
    """The command line of `reindex`."""

    inputs: list[str] = argument(
        "CDX...",
        "CDX files, directories, globs or URLs.",
    )
    output: str = option("--output -o DIR", "Directory, s3 or hdfs URL for the new index files.")
    offsets: list[str] = option(
        "--offsets FILE",
        "Table of offsets that cdxmill recompress --offsets wrote: path, directory, glob or URL. Give it several"
        " times if there are several.",
    )
    replace: bool = REPLACE


def reindex(arguments: ReindexArguments, failures: Failures) -> str:
    """Rewrite an index for archives that were written again.

    CDX is an index file of the old archives: CDXJ or CDX, gzipped or not. For each one, cdxmill writes an index file of
    the same name, with the new file names, offsets and lengths. All other bytes of a line stay. The lines are sorted. The
    archives themselves are not read. Lines of other archives are copied.

    A line is skipped and reported if the table of its archive has no record with its offset and length. Then the
    index was made from another state of the archive, and the exit status is 1. Failures are also listed
    in DIR/failures.tsv, or, if DIR is a URL, in a file beside the output, _NAME.failures.

    If you run it again, outputs that are up to date are kept. cdxmill never overwrites any other output unless
    you say --replace.

    Examples:
        cdxmill reindex -o cdx-moved --offsets moved cdx/
    """
    from cdxmill.commands.per_archive.reindex import reindex
    from cdxmill.commands.per_archive.task import OutputOptions
    from cdxmill.inputs.cdx_files import find_cdx_inputs
    from cdxmill.outputs.existing import Rule
    from cdxmill.outputs.names import below, output_names
    from cdxmill.outputs.offset_tables import find_tables

    check_no_pipe(arguments.inputs, "an index from a pipe has no name for its output; give a file")
    tables = find_tables(arguments.offsets, failures)
    names = output_names(find_cdx_inputs(arguments.inputs, failures), below)
    options = OutputOptions(
        processes=arguments.processes,
        existing=Rule.REPLACE if arguments.replace else Rule.STAY,
        quiet=arguments.quiet,
    )
    return str(reindex(names, tables, arguments.output, options, failures))
