"""The commands that fetch records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from cdxmill.cli.command import standard_output
from cdxmill.errors import OK, UsageError
from cdxmill.options.option import Needs, option, path_list, text_list
from cdxmill.options.records import Copying, Getting, Printing

if TYPE_CHECKING:
    from cdxmill.commands.copying.plan import Asked
    from cdxmill.running.failures import Failures


def get(arguments: Getting) -> int:
    """Print the record of a URL, or the record at an offset.

    If SOURCE is a cluster or a CDX file, cdxmill prints the capture of URL that is closest to TIMESTAMP (default: the newest
    one). With --offset, SOURCE is an archive. Only the bytes of the record are read. They are decompressed and
    checked to contain exactly one record.

    Examples:
        cdxmill get crawl http://example.com/ --payload --decode
        cdxmill get all.cdxj http://example.com/ --archives warcs
    """
    from cdxmill.commands.get import get_record
    from cdxmill.search.lookup import in_order

    with standard_output() as out, in_order(os.fspath(arguments.source), [arguments.url]):
        for piece in get_record(arguments):
            out.write(piece)
    return OK


def cat(arguments: Printing, failures: Failures) -> str:
    """Print a record of an archive, or list all records.

    SOURCE is a WARC or ARC file, compressed with gzip or Zstandard or not compressed, or a pipe (- is standard input). With --offset, only the bytes
    of that record are read, and the dictionary of a Zstandard file. They are decompressed and checked to
    contain exactly one record. With --table, all records are listed with their offsets.

    Examples:
        cdxmill cat warcs/iana.warc.gz --table records.tsv
        cdxmill cat warcs/iana.warc.gz --offset 334 --length 2258
    """
    from cdxmill.inputs.pipes import unpiped

    with unpiped(os.fspath(arguments.archive)) as place:
        return _cat(replace(arguments, archive=place.text), failures)


def _cat(arguments: Printing, failures: Failures) -> str:
    from cdxmill.commands.cat import content_asked, table_asked
    from cdxmill.messages import count

    if arguments.table is not None and arguments.table != "-":
        return f"{arguments.table}: {count(table_asked(arguments, failures), 'record')}"
    with standard_output() as out:
        if arguments.table is not None:
            return count(table_asked(arguments, failures, out), "record")
        for piece in content_asked(arguments):
            out.write(piece)
    return ""


class CopyArguments(Copying):
    """The command line of `copy`."""

    input: str | None = option(
        "--input -i FILE",
        "Read more queries from this file, one per line; - reads standard input.",
        default=None,
    )
    dry_run: bool = option(
        "--dry-run",
        "Print the number of captures, archives, bytes and requests, without those for --related and --originals. No"
        " archive is read.",
        default=False,
    )
    json: bool = option("--json", "With --dry-run: print JSON.", Needs("dry_run"), default=False)

    def asked(self) -> Asked:
        """What is to be copied. Raises UsageError, InputError."""
        from cdxmill.commands.copying.plan import ask
        from cdxmill.search.lookup import in_order

        if self.output is None and not self.dry_run:
            raise UsageError("give -o OUTPUT, or --dry-run")
        urls = list(self._urls())
        if self.input is not None and not urls:
            raise UsageError(f"{self.input}: has no queries")
        with in_order(",".join(path_list(self.source)), urls):
            return ask(self, urls)

    def _urls(self) -> Iterator[str]:
        from cdxmill.cli.lookup import read_urls
        from cdxmill.search.sources import check_read_once

        yield from text_list(self.queries)
        if self.input is not None:
            check_read_once(",".join(path_list(self.source)), self.input)
            yield from read_urls(self.input)


def copy(arguments: CopyArguments, failures: Failures) -> str:
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
    asked = arguments.asked()
    if arguments.dry_run:
        return _print_sizes(arguments, asked, failures)
    from cdxmill.commands.copying.copy import FAILURES
    from cdxmill.commands.copying.copy import copy as copy_captures
    from cdxmill.messages import count

    output = str(arguments.output)
    summary = copy_captures(asked, output, arguments, failures)
    listed = f"\n{count(failures.count, 'failure')}, listed in {output}/{FAILURES}" if failures.count else ""
    return f"{output}: {summary}{listed}"


def _print_sizes(arguments: CopyArguments, asked: Asked, failures: Failures) -> str:
    from cdxmill.commands.copying.check import as_json, as_table, check

    sizes = check(asked, failures)
    with standard_output() as out:
        out.write((as_json(sizes) if arguments.json else as_table(sizes)).encode("utf-8", "surrogateescape"))
    return ""
