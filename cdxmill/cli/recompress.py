"""`cdxmill recompress`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cdxmill.cli.arguments import ArchiveArguments, Replace, RunArguments
from cdxmill.cli.command import Option, command
from cdxmill.cli.output import FAILED, OK, print_summary
from cdxmill.errors import InputError, UsageError

if TYPE_CHECKING:
    from cdxmill.commands.recompress_one import RecompressOptions

HIGHEST_LEVELS = {"zst": 22, "gz": 12}


@dataclass(frozen=True, kw_only=True)
class RecompressArguments(ArchiveArguments, RunArguments):
    """The command line of `recompress`."""

    output: Annotated[
        str,
        Option("--output", "-o", metavar="DIR", help="Directory, s3 or hdfs URL for the new archives."),
    ]
    to: Annotated[str, Option("--to", help="Format to write: zst or gz.")] = "zst"
    dictionary: Annotated[
        str | None,
        Option(
            "--dictionary",
            metavar="FILE",
            help="zstd dictionary, path or URL, from cdxmill train-dictionary. It becomes a part of each new archive.",
        ),
    ] = None
    level: Annotated[int, Option(min=1, max=22, help="Compression level. gz: 12 at most.")] = 6
    replace: Replace = False

    def options(self) -> RecompressOptions:
        """How archives are written again. Raises UsageError."""
        from cdxmill.commands.recompress_one import RecompressOptions

        if self.to not in HIGHEST_LEVELS:
            raise UsageError(f"--to: invalid format {self.to!r}; expected {' or '.join(HIGHEST_LEVELS)}")
        if self.level > HIGHEST_LEVELS[self.to]:
            raise UsageError(f"--level: {self.to} has levels 1 to {HIGHEST_LEVELS[self.to]}")
        return RecompressOptions(
            to=self.to,
            level=self.level,
            dictionary=self._dictionary(),
            processes=self.process_count(),
            quiet=self.quiet,
        )

    def _dictionary(self) -> bytes:
        if self.dictionary is None:
            return b""
        if self.to != "zst":
            raise UsageError("--dictionary needs --to zst")
        from cdxmill.storage.choose import read_bytes

        try:
            return read_bytes(self.dictionary)
        except InputError as error:
            raise UsageError(f"--dictionary: {error}") from None


@command
def recompress(arguments: RecompressArguments) -> int:
    """Write WARC and ARC files again, compressed in another way: as Zstandard, or as gzip.

    INPUT is an archive, directory, glob or URL (http, https, s3, hdfs). cdxmill writes one archive per input, with
    the same relative path; .gz in the name becomes .zst, and the other way round. Its records have the same bytes and the
    same order. Each record is in a member or frame of its own, whatever it was in before. So cdxmill also repairs
    archives that are compressed in one piece, or in blocks.

    A corrupt or truncated record is skipped, and reported on stderr and in DIR/failures.tsv, or, if DIR is a URL, in
    a file beside the output, _NAME.failures. Each record that is written is decompressed again and compared.
    """
    from cdxmill.commands.recompress import recompress
    from cdxmill.inputs.output_names import output_names, recompressed_name
    from cdxmill.running.failures import Failures

    failures = Failures()
    options = arguments.options()
    names = output_names(arguments.archives(failures), lambda path: recompressed_name(path, arguments.to))
    summary = recompress(names, arguments.output, options, failures)
    print_summary(summary, quiet=arguments.quiet)
    return FAILED if failures.count else OK
