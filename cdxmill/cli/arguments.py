"""The options that commands share, and what is made of them.

Modules of commands are imported when they are needed, so that the command starts quickly.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdxmill.errors import UsageError

if TYPE_CHECKING:
    from cdxmill.commands.index import IndexOptions
    from cdxmill.commands.zipnum import ZipnumOptions
    from cdxmill.inputs.named import Input

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress; failures are still told.")]
Processes = Annotated[
    int, typer.Option("--processes", "-p", min=0, help="Processes to use; 0: one for each core.")
]
Archives = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT...",
        help="Archives, folders of archives (searched to the bottom), globs, or URLs.",
    ),
]


def _folder_here(named: str) -> Path:
    if "://" in named:
        raise UsageError(
            f"{named}: clusters are built in a folder of this machine; cdxmill publish puts them elsewhere"
        )
    return Path(named)


NewCluster = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="CLUSTER", help="Folder of the cluster.", parser=_folder_here),
]
CdxFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="CDX...", help="CDX files, gzip or plain, sorted or not; folders of them; globs; URLs."
    ),
]
ManifestOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="List of archives, one a line (its last tab-separated field), also .gz or a URL; - is standard"
        " input."
        " Blank lines, and lines that start with #, are skipped.",
    ),
]
Root = Annotated[str | None, typer.Option(metavar="DIR", help="Where relative paths of the manifest start.")]
DirRoot = Annotated[
    str | None,
    typer.Option(
        "--dir-root", "-d", metavar="DIR", help="Make file names in index lines relative to this folder."
    ),
]
Records = Annotated[
    str | None,
    typer.Option(
        metavar="TYPES",
        help="Record types to index, separated by commas, or all."
        " Default: response,revisit,resource,metadata,conversion without a crawler's own notes.",
    ),
]
PostAppend = Annotated[
    bool, typer.Option("--post-append", help="Append method and body of non-GET requests to the URL's key.")
]
Minimal = Annotated[
    bool,
    typer.Option("--minimal", help="Leave out mime (but a revisit's), status and redirect."),
]
Unsurt = Annotated[
    bool,
    typer.Option(
        "--unsurt",
        help="Write keys as host/path, not host-reversed. For old tools; lookup needs the reversed ones.",
    ),
]
KeepWww = Annotated[
    bool,
    typer.Option(
        "--keep-www", help="Keep www. in keys; the keys that pywb, OpenWayback and lookup ask for have none."
    ),
]
Cdx11 = Annotated[
    bool, typer.Option("--cdx11", "-11", help="Write CDX lines with 11 fields instead of CDXJ.")
]
Cdx9 = Annotated[
    bool, typer.Option("--cdx9", "--cdx09", "-9", help="Write CDX lines with 9 fields instead of CDXJ.")
]
Shards = Annotated[
    int | None, typer.Option("--shards", "-s", min=1, help="Number of shards; --splits tells it, too.")
]
Seed = Annotated[int, typer.Option(help="Seed of the sample: the same seed gives the same split points.")]
Fraction = Annotated[
    float,
    typer.Option(
        metavar="F",
        help="Read this part of the files only, chosen at random by --seed: above 0, 1 is all of them.",
    ),
]
Splits = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Take split points from this file or URL (text or SequenceFile)."),
]
NumLines = Annotated[int, typer.Option("--numlines", min=1, help="Lines in a block.")]
CompressorOption = Annotated[
    str, typer.Option("--compressor", help="Library that packs the blocks: libdeflate or zlib.")
]
Level = Annotated[int, typer.Option(min=1, max=12, help="How hard blocks are packed (zlib: up to 9).")]
Location = Annotated[
    str | None,
    typer.Option(
        metavar="BASE",
        help="Folder or URL that cluster.loc names for the shards. Default: CLUSTER as an absolute path.",
    ),
]
PublishedLocation = Annotated[
    str | None,
    typer.Option(
        "--location",
        metavar="BASE",
        help="Folder or URL that cluster.loc names for the shards. Default: where they are then.",
    ),
]
Title = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Title of the collection, in metadata.yaml. Default: the one that stands, or its folder's name.",
    ),
]
IndexOnly = Annotated[bool, typer.Option("--index-only", help="Leave the shards in CLUSTER; copy all else.")]
Unfinished = Annotated[
    bool,
    typer.Option(
        "--unfinished", help="Take a cluster without cluster.json, too: all shards that stand there."
    ),
]

SplitsOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Text file, such as splits.txt, also an s3 or hdfs URL; splits.seq is written beside it.",
    ),
]


def archives_of(
    inputs: list[str] | None, manifest: str | None, root: str | None, dir_root: str | None
) -> list[Input]:
    """The archives that are named. Raises UsageError where none is."""
    from cdxmill.inputs.archives import find_archives

    if not inputs and manifest is None:
        raise UsageError("no input: name archives, folders of them, or a --manifest")
    if root is not None and manifest is None:
        raise UsageError("--root is for the paths of a --manifest")
    return find_archives(inputs or [], manifest, root, dir_root)


def cdx_files_of(named: list[str]) -> list[str]:
    """The CDX files that are named."""
    from cdxmill.inputs.cdx_files import find_cdx_files

    return find_cdx_files(named)


def processes_of(wanted: int) -> int:
    """How many processes -p asks for."""
    from cdxmill.running.processes import processes_by_default

    return wanted or processes_by_default()


def index_options(  # noqa: PLR0913
    processes: int,
    skip_existing: bool,
    quiet: bool,
    cdx11: bool,
    cdx9: bool,
    records: str | None,
    post_append: bool,
    minimal: bool,
    unsurt: bool,
    keep_www: bool,
) -> IndexOptions:
    """How archives are indexed, from the options that say so. Raises UsageError."""
    from cdxmill.commands.index import IndexOptions
    from cdxmill.stages.captures.capture_options import DEFAULT_RECORDS, CaptureOptions

    if cdx11 and cdx9:
        raise UsageError("--cdx11 and --cdx9 exclude each other")
    if minimal and post_append:
        raise UsageError("--minimal reads no requests, which --post-append needs")
    types = DEFAULT_RECORDS if records is None else _record_types(records)
    captures = CaptureOptions(types, post_append, minimal, unsurt, keep_www)
    line_format = "cdx11" if cdx11 else "cdx9" if cdx9 else "cdxj"
    return IndexOptions(captures, line_format, processes_of(processes), skip_existing, quiet)


def _record_types(named: str) -> frozenset[bytes] | None:
    from cdxmill.stages.captures.capture_options import RECORD_TYPES

    types = frozenset(name.strip().lower().encode() for name in named.split(","))
    if types == {b"all"}:
        return None
    for unknown in types - RECORD_TYPES:
        known = b", ".join(sorted(RECORD_TYPES)).decode()
        raise UsageError(f"--records: there is no type {unknown.decode()!r}; types are {known}, or all")
    return types


def zipnum_options(  # noqa: PLR0913
    shards: int | None,
    splits: str | None,
    seed: int,
    numlines: int,
    library: str,
    level: int,
    location: str | None,
    convert: bool,
    processes: int,
    quiet: bool,
) -> ZipnumOptions:
    """How a cluster is built, from the options that say so. Raises UsageError."""
    from cdxmill.commands.zipnum import ZipnumOptions
    from cdxmill.formats.zipnum_block import LIBRARIES, Compressor
    from cdxmill.inputs.split_files import read_splits

    if library not in LIBRARIES:
        raise UsageError(f"--compressor is one of {', '.join(LIBRARIES)}, not {library}")
    if library == "zlib" and level > 9:
        raise UsageError("zlib has levels up to 9")
    points = None if splits is None else tuple(read_splits(splits))
    if points is None and shards is None:
        raise UsageError("say how many shards (-s), or where they begin (--splits FILE)")
    if points is not None and shards not in (None, len(points) + 1):
        raise UsageError(
            f"{splits} gives {len(points) + 1} shards, but --shards says {shards}: leave out one"
        )
    count = len(points) + 1 if points is not None else shards or 1
    return ZipnumOptions(
        count,
        points,
        numlines,
        Compressor(library, level),
        convert,
        seed,
        processes_of(processes),
        location,
        quiet,
    )
