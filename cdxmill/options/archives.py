"""Options of commands that read archives."""

from collections.abc import Iterable
from dataclasses import field

from cdxmill.options.option import (
    DICTIONARY,
    AnyPath,
    EngineOptions,
    Excludes,
    Existing,
    Flag,
    Needs,
    Options,
    Paths,
    Running,
    argument,
    flags,
    option,
)


class ArchiveInputs(Options):
    """Which archives are read."""

    inputs: Paths = argument(
        "INPUT...",
        "Archives, WACZ files, directories (searched recursively), globs or URLs.",
        default=(),
        kw_only=False,
    )
    manifest: AnyPath | None = option(
        "--manifest FILE",
        "File or URL with a list of archives, one per line; - reads standard input. It may be gzipped. The last"
        " tab-separated field of a line that is not empty is used. Blank lines and lines that start with # are"
        " skipped.",
        default=None,
    )
    root: AnyPath | None = option(
        "--root DIR",
        "Directory or URL that relative paths in the manifest start from.",
        Needs("manifest"),
        default=None,
    )
    dir_root: AnyPath | None = field(default=None, init=False)
    dictionary: AnyPath | None = DICTIONARY


class NamedInputs(ArchiveInputs):
    """Which archives are indexed, their names in index lines, and the format of these."""

    dir_root: AnyPath | None = option(
        "--dir-root -d DIR", "Write file names in index lines relative to this directory.", default=None
    )
    line_format: str = flags(
        Flag("cdx11", "--cdx11 -11", "Write CDX lines with 11 fields instead of CDXJ."),
        Flag("cdx9", "--cdx9 --cdx09 -9", "Write CDX lines with 9 fields instead of CDXJ."),
        default="cdxj",
    )


class Recording(Options):
    """Which records get an index line, and what the line has."""

    records: str | Iterable[str] | None = option(
        "--records TYPES",
        "Record types to index, comma-separated, or all. Default: response, revisit, resource, metadata and"
        " conversion, except notes that a crawler writes about its own fetches.",
        default=None,
    )
    post_append: bool = option(
        "--post-append", "Append the method and body of non-GET requests to the URL's key.", default=False
    )
    minimal: bool = option(
        "--minimal",
        "Omit status, redirect and mime (but keep mime of revisits).",
        Excludes("post_append"),
        default=False,
    )
    unsurt: bool = option(
        "--unsurt",
        "Write keys as host/path, without reversing the host. For old tools only: lookup cannot search such an"
        " index.",
        default=False,
    )
    keep_www: bool = option(
        "--keep-www", "Keep www. in keys. pywb, OpenWayback and lookup expect keys without it.", default=False
    )
    check_digests: bool = option(
        "--check-digests",
        "Check the digests in record headers (WARC-Block-Digest, WARC-Payload-Digest). A record with a wrong one is"
        " reported, and gets no line.",
        default=False,
    )


class LineOptions(Recording, NamedInputs, Running):
    """How archives are indexed: what `index` and `build` have in common."""


class Indexing(Existing, LineOptions, EngineOptions):
    """The arguments of `index`."""

    output: AnyPath = option(
        "--output -o OUTPUT",
        "Directory, s3 or hdfs URL for the .cdx.gz files. A name that ends in .cdxj, .cdx, .cdxj.gz or .cdx.gz is"
        " one sorted file with the lines of all archives, unless such a directory exists. - writes these lines to"
        " stdout.",
    )
