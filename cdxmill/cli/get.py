"""`cdxmill get`: its options, its help and the call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from cdxmill.cli.command import command, standard_output
from cdxmill.errors import OK
from cdxmill.messages import say
from cdxmill.options.option import Flag, Needs, Option, optional_path
from cdxmill.options.records import Getting


@dataclass(kw_only=True, repr=False, eq=False)
class GetArguments(Getting):
    """The command line of `get`."""

    form: Annotated[
        Literal["record", "headers", "payload"],
        Flag("headers", "--headers", help="Print only the record header and the HTTP header."),
        Flag("payload", "--payload", help="Print only the payload, which follows the HTTP header."),
    ] = "record"
    decode: Annotated[
        bool,
        Option(help="With --payload: decode chunked, gzip, deflate, br (needs brotli) and zstd."),
        Needs("form=payload"),
    ] = False


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
    from cdxmill.commands.get import GetOptions, get_capture, get_record, wanted_of

    options = GetOptions(
        archives=optional_path(arguments.archives), form=arguments.form, decode=arguments.decode, note=say
    )
    wanted = wanted_of(arguments)
    if wanted is None:
        return get_capture(str(arguments.source), arguments.url or "", arguments.timestamp, options)
    return get_record(wanted, options)
