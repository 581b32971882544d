"""Options of commands that read archives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.options.option import (
    AnyPath,
    Argument,
    Excludes,
    Existing,
    Flag,
    Needs,
    Option,
    Paths,
    Replace,
    Running,
)


@dataclass(kw_only=True, repr=False, eq=False)
class ArchiveInputs:
    """Which archives are read."""

    inputs: Annotated[
        Paths,
        Argument("INPUT...", "Archives, WACZ files, directories (searched recursively), globs or URLs."),
    ] = field(default=(), kw_only=False)
    manifest: Annotated[
        AnyPath | None,
        Option(
            metavar="FILE",
            help="File or URL with a list of archives, one per line; - reads standard input. It may be gzipped."
            " The last tab-separated field of a line that is not empty is used. Blank lines and lines that start with # are"
            " skipped.",
        ),
    ] = None
    root: Annotated[
        AnyPath | None,
        Option(metavar="DIR", help="Directory or URL that relative paths in the manifest start from."),
        Needs("manifest"),
    ] = None
    dir_root: AnyPath | None = field(default=None, init=False)


@dataclass(kw_only=True, repr=False, eq=False)
class NamedInputs(ArchiveInputs):
    """Which archives are indexed, and their names in index lines."""

    dir_root: Annotated[
        AnyPath | None,
        Option(
            "--dir-root",
            "-d",
            metavar="DIR",
            help="Write file names in index lines relative to this directory.",
        ),
    ] = None


@dataclass(kw_only=True, repr=False, eq=False)
class LineFormat:
    """The format of index lines."""

    line_format: Annotated[
        str,
        Flag("cdx11", "--cdx11", "-11", help="Write CDX lines with 11 fields instead of CDXJ."),
        Flag("cdx9", "--cdx9", "--cdx09", "-9", help="Write CDX lines with 9 fields instead of CDXJ."),
    ] = "cdxj"


@dataclass(kw_only=True, repr=False, eq=False)
class Recording:
    """Which records get an index line, and what the line has."""

    records: Annotated[
        str | Iterable[str] | None,
        Option(
            metavar="TYPES",
            help="Record types to index, comma-separated, or all."
            " Default: response, revisit, resource, metadata and conversion, except notes that a crawler"
            " writes about its own fetches.",
        ),
    ] = None
    post_append: Annotated[
        bool, Option(help="Append the method and body of non-GET requests to the URL's key.")
    ] = False
    minimal: Annotated[
        bool,
        Option(help="Omit status, redirect and mime (but keep mime of revisits)."),
        Excludes("post_append"),
    ] = False
    unsurt: Annotated[
        bool,
        Option(
            help="Write keys as host/path, without reversing the host. For old tools only: lookup cannot search"
            " such an index."
        ),
    ] = False
    keep_www: Annotated[
        bool, Option(help="Keep www. in keys. pywb, OpenWayback and lookup expect keys without it.")
    ] = False


@dataclass(kw_only=True, repr=False, eq=False)
class LineOptions(Recording, LineFormat, NamedInputs, Running):
    """How archives are indexed: what `index` and `build` have in common."""


@dataclass(kw_only=True, repr=False, eq=False)
class Indexing(Existing, LineOptions):
    """The arguments of `index`."""

    output: Annotated[
        AnyPath,
        Option(
            "--output",
            "-o",
            metavar="OUTPUT",
            help="Directory, s3 or hdfs URL for the .cdx.gz files. A name that ends in .cdxj, .cdx, .cdxj.gz or"
            " .cdx.gz is one sorted file with the lines of all archives, unless such a directory exists. - writes"
            " these lines to stdout.",
        ),
    ]


@dataclass(kw_only=True, repr=False, eq=False)
class CountOptions(Running):
    """What is counted, and how."""

    what: Annotated[str, Argument("WHAT", "What is counted.")]
    replace: Replace = False


@dataclass(kw_only=True, repr=False, eq=False)
class TrainOptions(Running):
    """How a dictionary is trained. Without `id`, its id depends on the content."""

    size: Annotated[
        int,
        Option(
            min=1,
            max=16384,
            metavar="N",
            help="Largest size of the dictionary, in KiB. It never gets larger than an eighth of the sample.",
        ),
    ] = 1024
    id: Annotated[
        int | None,
        Option(
            min=32768,
            max=2**31 - 1,
            metavar="N",
            help="Id of the dictionary. Default: computed from its content.",
        ),
    ] = None
    level: Annotated[
        int, Option(min=1, max=22, metavar="N", help="Level of the frames that will be written with it.")
    ] = 6
    seed: Annotated[int, Option(metavar="N", help="Seed of the random sample.")] = 0
    replace: Replace = False
