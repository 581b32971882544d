"""Options of commands that fetch records: `get` and `copy`."""

import re
from collections.abc import Iterable
from typing import Literal

from cdxmill.errors import UsageError
from cdxmill.options.option import (
    DICTIONARY,
    AnyPath,
    Excludes,
    Flag,
    Needs,
    Options,
    Paths,
    Quiet,
    ReadBy,
    argument,
    flags,
    option,
)
from cdxmill.options.queries import NEWEST, Selection
from cdxmill.regex import regex

_SIZE = regex(r"(\d{1,12})([KMGT]?)(?:i?B)?", re.I)
_LEAST = 1 << 16
"""Bytes of the smallest size limit: a warcinfo record and a page."""


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    size = int(found[1]) << 10 * " KMGT".index(found[2].upper()) if found else 0
    if size < _LEAST:
        raise UsageError(f"--size {text}: expected a size of at least 64K, such as 500M or 1G")
    return size


class Copying(Quiet, Selection):
    """The arguments of `copy`. `size` is in bytes."""

    source: Paths = argument(
        "SOURCE",
        "ZipNum cluster (directory, URL or .idx file), crawl by name, such as CC-MAIN-2024-22 or CC-MAIN-2024-*,"
        " prefix B-tree, .cdxj file, or - for CDXJ lines on standard input. Several are separated by commas.",
        kw_only=False,
    )
    queries: str | Iterable[str] = argument(
        "QUERY...",
        "URLs as in lookup: URL, URL* or *.HOST; * for all captures. Default for a file or standard input: all lines.",
        default=(),
        kw_only=False,
    )
    newest_crawls: int | None = NEWEST
    output: AnyPath | None = option(
        "--output -o OUTPUT", "Directory, s3 or hdfs URL to write to.", default=None
    )
    archives: AnyPath | None = option(
        "--archives LOCATION",
        "Where the archives are: a directory, a URL prefix, or a path index. Default: those of the crawl,"
        " archives.tsv of the cluster, or the current directory.",
        default=None,
    )
    processes: int = option(
        "--processes -p N",
        "Number of processes; each sends one request at a time. 0: one per core.",
        default=4,
        min=0,
    )
    keep_arc: bool = option(
        "--keep-arc", "Write ARC records to .arc.gz files. Default: convert them to WARC.", default=False
    )
    related: bool = option(
        "--related", "Also copy the request and metadata records beside each response.", default=False
    )
    originals: bool = option("--originals", "Also copy the record that a revisit refers to.", default=False)
    any_digest: bool = option(
        "--any-digest",
        "Also copy records whose payload does not have the digest of the index line. They are reported.",
        default=False,
    )
    source_headers: bool = option(
        "--source-headers",
        "Add the fields WARC-Source-URI and WARC-Source-Range to each header: where the record was copied from.",
        Excludes("keep_arc"),
        default=False,
    )
    size: int = option(
        "--size SIZE",
        "Size limit of a file, such as 500M or 1G. Default: 1G.",
        ReadBy(_size),
        default=1 << 30,
    )
    rate: float | None = option("--rate N", "At most N requests per second. Default: no limit.", default=None)


class Getting(Options):
    """The arguments of `get`."""

    source: AnyPath = argument(
        "SOURCE",
        "ZipNum cluster (directory or URL), CDX or CDXJ file, or crawl by name, such as CC-MAIN-2024-22 or"
        " CC-MAIN-2024-*. With --offset an archive: path, URL, or name in --archives.",
        kw_only=False,
    )
    url: str | None = argument("URL", "URL of the capture.", default=None, kw_only=False)
    timestamp: str | None = argument(
        "TIMESTAMP",
        "Get the capture closest to this time, 4 to 14 digits; -: one without a time. Default: the newest.",
        default=None,
        kw_only=False,
    )
    offset: int | None = option(
        "--offset N", "Offset of the record in SOURCE, in bytes.", default=None, min=0
    )
    length: int | None = option(
        "--length N",
        "Length of the record at --offset. Default: to the end of the record.",
        Needs("offset"),
        default=None,
        min=1,
    )
    newest_crawls: int | None = NEWEST
    archives: AnyPath | None = option(
        "--archives LOCATION",
        "Where the archives are: a directory, a URL prefix, a WACZ, or a path index (a text file; each line: file"
        " name, tab, path or URL). Default: the archives.tsv that build wrote to the cluster, or else the current"
        " directory. Absolute paths and URLs in index lines must be below LOCATION.",
        default=None,
    )
    form: Literal["record", "headers", "payload"] = flags(
        Flag("headers", "--headers", "Print only the record header and the HTTP header."),
        Flag("payload", "--payload", "Print only the payload, which follows the HTTP header."),
        default="record",
    )
    decode: bool = option(
        "--decode",
        "With --payload: decode chunked, gzip, deflate, br (needs brotli) and zstd.",
        Needs("form=payload"),
        default=False,
    )
    dictionary: AnyPath | None = DICTIONARY


class Printing(Quiet):
    """The arguments of `cat`."""

    archive: AnyPath = argument(
        "SOURCE",
        "Archive: path, URL, or - for standard input.",
        kw_only=False,
    )
    offset: int | None = option("--offset N", "Print the record at this offset.", default=None, min=0)
    length: int | None = option(
        "--length N",
        "Length of the record in SOURCE. Default: to the end of the record.",
        Needs("offset"),
        default=None,
        min=1,
    )
    table: AnyPath | None = option(
        "--table FILE",
        "Write a table of all records to this path, s3 or hdfs URL: url, kind, offset and length, separated by tabs. - writes to stdout.",
        default=None,
    )
    replace: bool = option("--replace", "Replace an existing output.", Needs("table"), default=False)
    dictionary: AnyPath | None = DICTIONARY
