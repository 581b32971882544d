"""`cdxmill recompress`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cdxmill.cli.command import Printing, check_no_pipe, command, print_summary
from cdxmill.errors import FAILED, OK, InputError, UsageError
from cdxmill.options.archives import ArchiveInputs
from cdxmill.options.option import Excludes, Existing, Needs, Option, Running, path_list

if TYPE_CHECKING:
    from cdxmill.commands.per_archive.recompress import RecompressOptions

HIGHEST_LEVELS = {"zst": 22, "gz": 12}


@dataclass(kw_only=True, repr=False, eq=False)
class RecompressArguments(Printing, ArchiveInputs, Existing, Running):
    """The command line of `recompress`."""

    output: Annotated[
        str, Option("--output", "-o", metavar="DIR", help="Directory, s3 or hdfs URL for the new archives.")
    ]
    to: Annotated[
        str, Option(metavar="FORMAT", choices=("zst", "gz"), help="Format to write: zst or gz.")
    ] = "zst"
    dictionary: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="zstd dictionary, path or URL, from cdxmill train-dictionary. It becomes a part of each new archive.",
        ),
        Needs("to=zst"),
    ] = None
    level: Annotated[int, Option(min=1, max=22, help="Compression level. gz: 12 at most.")] = 6
    max_window: Annotated[
        int,
        Option(
            min=8,
            max=2048,
            metavar="N",
            help="Read Zstandard frames that need a window of at most N MiB. Each process may need that much memory.",
        ),
    ] = 128
    group: Annotated[
        bool,
        Option(
            help="Compress the request, the response and the metadata of a capture together. The archive is smaller, but"
            " breaks the specification: no reader can get a single one of these records, and cdxmill cannot index it."
        ),
        Excludes("index", "offsets"),
    ] = False
    index: Annotated[bool, Option(help="Write the CDXJ index of each new archive, too, beside it.")] = False
    offsets: Annotated[
        bool,
        Option(
            help="Write a table of the old and the new offsets beside each new archive, too, for cdxmill reindex."
        ),
    ] = False

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


@command
def recompress(arguments: RecompressArguments) -> int:
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
    from cdxmill.running.failures import Failures

    check_no_pipe(
        path_list(arguments.inputs), "an archive from a pipe has no name for its output; give a file"
    )
    failures = Failures()
    options = arguments.options()
    names = output_names(
        find_archives(arguments, failures), lambda path: recompressed_name(path, arguments.to)
    )
    summary = recompress(names, arguments.output, options, failures)
    print_summary(summary, quiet=arguments.quiet)
    return FAILED if failures.count else OK
