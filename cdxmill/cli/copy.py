"""`cdxmill copy`: its options, its help and the call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cdxmill.cli.command import Printing, command, print_summary, standard_output
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.options.option import Needs, Option, text_list
from cdxmill.options.records import Copying

if TYPE_CHECKING:
    from cdxmill.commands.copying.plan import Asked
    from cdxmill.running.failures import Failures


@dataclass(kw_only=True, repr=False, eq=False)
class CopyArguments(Printing, Copying):
    """The command line of `copy`."""

    input: Annotated[
        str | None,
        Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Read more queries from this file, one per line; - reads standard input.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Option(
            help="Print the number of captures, archives, bytes and requests, without those for --related and"
            " --originals. No archive is read."
        ),
    ] = False
    json: Annotated[bool, Option(help="With --dry-run: print JSON."), Needs("dry_run")] = False

    def asked(self) -> Asked:
        """What is to be copied. Raises UsageError, InputError."""
        from cdxmill.commands.copying.plan import ask

        if self.output is None and not self.dry_run:
            raise UsageError("give -o OUTPUT, or --dry-run")
        urls = list(self._urls())
        if self.input is not None and not urls:
            raise UsageError(f"{self.input}: has no queries")
        return ask(self, urls)

    def _urls(self) -> Iterator[str]:
        from cdxmill.cli.lookup import read_urls

        yield from text_list(self.queries)
        if self.input is not None:
            yield from read_urls(self.input)


@command
def copy(arguments: CopyArguments) -> int:
    """Copy captures to new archives, with an index.

    cdxmill looks up each QUERY in SOURCE and reads only the bytes of the records found. It writes them to .warc.gz
    files, with one .cdxj file each. Neighboring records are read in one request. Each record is checked: it must be
    that of its index line, and its payload must have the digest of the line.

    If the run is killed, run it again: it continues, and nothing is copied twice. Captures that OUTPUT has already are
    skipped, and its files are never changed. Captures that cannot be copied are listed in copy-failures.tsv.

    Examples:
        cdxmill copy cluster '*.example.com' --dry-run
        cdxmill copy -o mine cluster '*.example.com' --archives warcs
        cdxmill lookup cluster example.com | cdxmill copy -o mine --archives warcs -
    """
    from cdxmill.running.failures import Failures

    asked = arguments.asked()
    failures = Failures()
    if arguments.dry_run:
        _print_sizes(arguments, asked, failures)
    else:
        _copy(arguments, asked, failures)
    return FAILED if failures.count else OK


def _copy(arguments: CopyArguments, asked: Asked, failures: Failures) -> None:
    from cdxmill.commands.copying.copy import FAILURES
    from cdxmill.commands.copying.copy import copy as copy_captures
    from cdxmill.messages import count

    output = str(arguments.output)
    summary = copy_captures(asked, output, arguments, failures)
    print_summary(f"{output}: {summary}", quiet=arguments.quiet)
    if failures.count:
        print_summary(
            f"{count(failures.count, 'failure')}, listed in {output}/{FAILURES}", quiet=arguments.quiet
        )


def _print_sizes(arguments: CopyArguments, asked: Asked, failures: Failures) -> None:
    from cdxmill.commands.copying.check import as_json, as_table, check

    sizes = check(asked, failures)
    with standard_output() as out:
        out.write((as_json(sizes) if arguments.json else as_table(sizes)).encode("utf-8", "surrogateescape"))
