"""The commands that check a cluster or get something out of it: their options and help. The work is in commands/.

Modules of commands are imported when they are needed, so that the command starts quickly.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cdxmill.cli.arguments import Processes, Quiet, SplitsOutput, cdx_files_of, processes_of
from cdxmill.cli.lookup import ShardRule
from cdxmill.cli.output import FAILED, OK, standard_output
from cdxmill.errors import UsageError

_Against = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CDX",
        help="Compare the lines with those of these CDX files: file, folder, glob or URL. May be repeated.",
    ),
]
_More = Annotated[
    list[str] | None,
    typer.Argument(metavar="CDX...", help="Further files of --against.", show_default=False),
]
_Convert = Annotated[
    bool,
    typer.Option("--convert", help="The files of --against have 6 fields; CLUSTER was built with --convert."),
]
_ArchivesToVerify = Annotated[
    str | None,
    typer.Option(
        "--archives",
        metavar="PLACE",
        help="Read the record of every line: from the archives in this folder, at this URL prefix,"
        " or in this path index (lines of: name, tab, path).",
    ),
]
_Sample = Annotated[
    int | None,
    typer.Option("--sample", min=1, metavar="N", help="With --archives: only N lines, drawn from all."),
]
_Location = Annotated[
    str | None,
    typer.Option(
        "--location",
        metavar="BASE",
        help="What cluster.loc has to name. Default: what it names is looked up.",
    ),
]

_Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Folder or URL of a ZipNum cluster; with --offset an archive: path, URL, or its name in --archives.",
    ),
]
_Url = Annotated[str | None, typer.Argument(metavar="URL", help="The URL of a capture.")]
_Timestamp = Annotated[
    str | None,
    typer.Argument(
        metavar="TIMESTAMP", help="1 to 14 digits: the capture nearest to it. Default: the newest."
    ),
]
_Offset = Annotated[int | None, typer.Option(min=0, metavar="N", help="Where in SOURCE the record begins.")]
_Length = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Bytes of the record there. Default: to its end."),
]
_Archives = Annotated[
    str | None,
    typer.Option(
        "--archives",
        metavar="PLACE",
        help="Where the archives are that lines name: a folder, a URL prefix, or a path index (lines of: name,"
        " tab, path). Default: lines have paths or URLs.",
    ),
]


def verify(  # noqa: PLR0913 - one parameter an option
    cluster: Annotated[
        str, typer.Argument(metavar="CLUSTER", help="Folder or URL of a ZipNum cluster: http(s), s3 or hdfs.")
    ],
    more: _More = None,
    against: _Against = None,
    convert: _Convert = False,
    archives: _ArchivesToVerify = None,
    sample: _Sample = None,
    location: _Location = None,
    shard_index_loc: ShardRule = None,
    processes: Processes = 0,
    quiet: Quiet = False,
) -> int:
    """Check that a cluster is whole and its files fit together.

    CLUSTER may be cdxmill's or another's. With its cluster.json every changed byte is found; without, every
    change that alters a line, an offset or the order. What is wrong is told on stderr, a line each. With
    --against CDX ... the lines have to be exactly those of the files CDX and so on.
    """
    from cdxmill.commands.verify import VerifyOptions
    from cdxmill.commands.verify import verify as verify_cluster
    from cdxmill.running.failures import Failures

    if sample is not None and archives is None:
        raise UsageError("--sample is for --archives")
    if convert and against is None:
        raise UsageError("--convert is for --against")
    if more and against is None:
        raise UsageError(f"{more[0]}: one cluster is verified at a time; CDX files are for --against")
    cdx = None if against is None else cdx_files_of([*against, *(more or [])])
    options = VerifyOptions(
        cdx, convert, archives, sample, location, shard_index_loc, processes_of(processes), quiet
    )
    failures = Failures()
    told = verify_cluster(cluster, options, failures)
    if not quiet:
        typer.echo(f"{cluster}: {told}", err=True)
    return FAILED if failures.count else OK


def split_points(
    from_cluster: Annotated[
        str,
        typer.Option(
            "--from-cluster",
            metavar="CLUSTER",
            help="Folder or URL of a ZipNum cluster; its secondary index is enough.",
        ),
    ],
    output: SplitsOutput,
    shards: Annotated[int, typer.Option("--shards", "-s", min=1, help="Number of shards to divide into.")],
    quiet: Quiet = False,
) -> int:
    """Find split points in the index of a cluster.

    A block stands for as many lines as it holds, so that shards come out as even as blocks allow, and no CDX
    file is read. The cluster is that of the last crawl, say. Written are the same two files as those of
    cdxmill sample.
    """
    from cdxmill.commands.split_points import points_of_cluster
    from cdxmill.inputs.split_files import write_splits

    found = points_of_cluster(from_cluster, shards)
    write_splits(found.points, output)
    if not quiet:
        typer.echo(str(found), err=True)
    return OK


def get(  # noqa: PLR0913
    source: _Source,
    url: _Url = None,
    timestamp: _Timestamp = None,
    offset: _Offset = None,
    length: _Length = None,
    archives: _Archives = None,
    headers: Annotated[
        bool, typer.Option("--headers", help="Only the record's header and the HTTP head.")
    ] = False,
    payload: Annotated[bool, typer.Option("--payload", help="Only what follows the HTTP head.")] = False,
    decode: Annotated[
        bool,
        typer.Option(
            "--decode", help="With --payload: undo chunked, gzip, deflate, br (needs brotli), zstd."
        ),
    ] = False,
) -> int:
    """Print the record of a URL, or the one at an offset.

    SOURCE is a cluster, and printed is its newest capture of URL or, with TIMESTAMP given, the nearest to it; or SOURCE is
    an archive, with --offset. Only the record's bytes are read; they are decompressed, and checked to be exactly
    one record.
    """
    from cdxmill.commands.get import GetOptions, Wanted, get_capture, get_record

    if headers and payload:
        raise UsageError("--headers and --payload exclude each other")
    if decode and not payload:
        raise UsageError("--decode is for --payload")
    if (url is None) == (offset is None):
        raise UsageError("say either a cluster and a URL, or an archive and --offset N")
    if length is not None and offset is None:
        raise UsageError("--length is for --offset")
    options = GetOptions(archives, "headers" if headers else "payload" if payload else "record", decode)
    if offset is not None:
        pieces = get_record(Wanted(source, offset, length), options)
    else:
        pieces = get_capture(source, url or "", timestamp, options)
    with standard_output() as out:
        for piece in pieces:
            out.write(piece)
    return OK
