"""`cdxmill get`: its options, its help and the call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from cdxmill.cli.command import Argument, Option, command
from cdxmill.cli.output import standard_output
from cdxmill.errors import OK, UsageError
from cdxmill.messages import say


@dataclass(frozen=True, kw_only=True)
class GetArguments:
    """The command line of `get`."""

    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="ZipNum cluster (directory or URL), CDX or CDXJ file, or crawl by name, such as CC-MAIN-2024-22 or"
            " CC-MAIN-2024-*. With --offset an archive: path, URL, or name in --archives.",
        ),
    ]
    url: Annotated[str | None, Argument(metavar="URL", help="URL of the capture.")] = None
    timestamp: Annotated[
        str | None,
        Argument(
            metavar="TIMESTAMP",
            help="Get the capture closest to this time, 4 to 14 digits. Default: the newest.",
        ),
    ] = None
    offset: Annotated[
        int | None, Option(min=0, metavar="N", help="Offset of the record in SOURCE, in bytes.")
    ] = None
    length: Annotated[
        int | None,
        Option(
            min=1, metavar="N", help="Length of the record at --offset. Default: to the end of the record."
        ),
    ] = None
    archives: Annotated[
        str | None,
        Option(
            "--archives",
            metavar="LOCATION",
            help="Where the archives are: a directory, a URL prefix, a WACZ, or a path index (a text file; each line:"
            " file name, tab, path or URL). Default: the archives.tsv that build wrote to the cluster, or else the"
            " current directory. Absolute paths and URLs in index lines must be below LOCATION.",
        ),
    ] = None
    headers: Annotated[
        bool, Option("--headers", help="Print only the record header and the HTTP header.")
    ] = False
    payload: Annotated[
        bool, Option("--payload", help="Print only the payload, which follows the HTTP header.")
    ] = False
    decode: Annotated[
        bool,
        Option("--decode", help="With --payload: decode chunked, gzip, deflate, br (needs brotli) and zstd."),
    ] = False

    def form(self) -> Literal["record", "headers", "payload"]:
        """Which part of the record is printed. Raises UsageError if options contradict each other."""
        if self.headers and self.payload:
            raise UsageError("--headers and --payload cannot be used together")
        if self.decode and not self.payload:
            raise UsageError("--decode needs --payload")
        if (self.url is None) == (self.offset is None):
            raise UsageError("give either a cluster and a URL, or an archive and --offset N")
        if self.length is not None and self.offset is None:
            raise UsageError("--length needs --offset")
        return "headers" if self.headers else "payload" if self.payload else "record"


@command
def get(arguments: GetArguments) -> int:
    """Print the record of a URL, or the record at an offset.

    If SOURCE is a cluster or a CDX file, cdxmill prints the capture of URL that is closest to TIMESTAMP (default: the newest
    one). With --offset, SOURCE is an archive. Only the bytes of the record are read. They are decompressed and
    checked to contain exactly one record.

    Examples:
        cdxmill get crawl http://example.com/ --payload --decode
        cdxmill get all.cdxj http://example.com/ --archives warcs
    """
    with standard_output() as out:
        for piece in _record(arguments):
            out.write(piece)
    return OK


def _record(arguments: GetArguments) -> Iterator[bytes]:
    from cdxmill.commands.get import GetOptions, RecordRange, get_capture, get_record

    options = GetOptions(
        archives=arguments.archives, form=arguments.form(), decode=arguments.decode, note=say
    )
    if arguments.offset is None:
        return get_capture(arguments.source, arguments.url or "", arguments.timestamp, options)
    return get_record(RecordRange(arguments.source, arguments.offset, arguments.length), options)
