"""Options of commands that fetch records: `get` and `copy`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.errors import UsageError
from cdxmill.options.option import AnyPath, Argument, Needs, Option, Paths, Running
from cdxmill.options.queries import Selection

_SIZE = re.compile(r"(\d{1,12})([KMGT]?)(?:i?B)?", re.I)
_LEAST = 1 << 16
"""Bytes of the smallest size limit: a warcinfo record and a page."""


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    size = int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ") if found else 0
    if size < _LEAST:
        raise UsageError(f"--size {text}: expected a size of at least 64K, such as 500M or 1G")
    return size


@dataclass(kw_only=True, repr=False, eq=False)
class CopyOptions(Running):
    """How captures are copied. `size` is in bytes."""

    keep_arc: Annotated[
        bool, Option(help="Write ARC records to .arc.gz files. Default: convert them to WARC.")
    ] = False
    related: Annotated[
        bool, Option(help="Also copy the request and metadata records beside each response.")
    ] = False
    originals: Annotated[bool, Option(help="Also copy the record that a revisit refers to.")] = False
    size: Annotated[
        int,
        Option(metavar="SIZE", help="Size limit of a file, such as 500M or 1G. Default: 1G.", parser=_size),
    ] = 1 << 30
    rate: Annotated[
        float | None, Option(metavar="N", help="At most N requests per second. Default: no limit.")
    ] = None
    processes: Annotated[
        int,
        Option(
            "--processes",
            "-p",
            min=0,
            metavar="N",
            help="Number of processes; each sends one request at a time. 0: one per core.",
        ),
    ] = 4


@dataclass(kw_only=True, repr=False, eq=False)
class CopyPlaces:
    """What is copied, and from where to where."""

    source: Annotated[
        Paths,
        Argument(
            "SOURCE",
            "ZipNum cluster (directory, URL or .idx file), crawl by name, such as CC-MAIN-2024-22 or"
            " CC-MAIN-2024-*, prefix B-tree, .cdxj file, or - for CDXJ lines on standard input. Several are"
            " separated by commas.",
        ),
    ] = field(kw_only=False)
    queries: Annotated[
        str | Iterable[str],
        Argument(
            "QUERY...",
            "URLs as in lookup: URL, URL* or *.HOST. Default for a file or standard input: all lines.",
        ),
    ] = field(default=(), kw_only=False)
    output: Annotated[
        AnyPath | None,
        Option("--output", "-o", metavar="OUTPUT", help="Directory, s3 or hdfs URL to write to."),
    ] = None
    archives: Annotated[
        AnyPath | None,
        Option(
            metavar="LOCATION",
            help="Where the archives are: a directory, a URL prefix, or a path index. Default: those of the crawl,"
            " archives.tsv of the cluster, or the current directory.",
        ),
    ] = None


@dataclass(kw_only=True, repr=False, eq=False)
class Copying(CopyOptions, CopyPlaces, Selection):
    """The arguments of `copy`."""


@dataclass(kw_only=True, repr=False, eq=False)
class Getting:
    """Which record `get` fetches."""

    source: Annotated[
        AnyPath,
        Argument(
            "SOURCE",
            "ZipNum cluster (directory or URL), CDX or CDXJ file, or crawl by name, such as CC-MAIN-2024-22 or"
            " CC-MAIN-2024-*. With --offset an archive: path, URL, or name in --archives.",
        ),
    ] = field(kw_only=False)
    url: Annotated[str | None, Argument("URL", "URL of the capture.")] = field(default=None, kw_only=False)
    timestamp: Annotated[
        str | None,
        Argument("TIMESTAMP", "Get the capture closest to this time, 4 to 14 digits. Default: the newest."),
    ] = field(default=None, kw_only=False)
    offset: Annotated[
        int | None, Option(min=0, metavar="N", help="Offset of the record in SOURCE, in bytes.")
    ] = None
    length: Annotated[
        int | None,
        Option(
            min=1, metavar="N", help="Length of the record at --offset. Default: to the end of the record."
        ),
        Needs("offset"),
    ] = None
    archives: Annotated[
        AnyPath | None,
        Option(
            metavar="LOCATION",
            help="Where the archives are: a directory, a URL prefix, a WACZ, or a path index (a text file; each line:"
            " file name, tab, path or URL). Default: the archives.tsv that build wrote to the cluster, or else the"
            " current directory. Absolute paths and URLs in index lines must be below LOCATION.",
        ),
    ] = None
