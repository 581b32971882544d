"""Options of commands that make, copy, check and serve clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.options.archives import LineOptions
from cdxmill.options.option import AnyPath, Argument, Needs, Option, Paths, Replace, Running, Seed, ShardRule

CdxFiles = Annotated[
    Paths, Argument("CDX...", "CDX files, directories, globs, URLs or pipes; - is standard input.")
]
ShardCount = Annotated[int, Option("--shards", "-s", min=1, help="Number of shards.")]
SplitsOutput = Option(
    "--output",
    "-o",
    metavar="FILE",
    help="Text file to write, such as splits.txt: path, s3 or hdfs URL. splits.seq is written beside it.",
)
Convert = Annotated[
    bool,
    Option(
        "--convert", help="Convert CDX lines with 6 fields (key timestamp url length offset file) to CDXJ."
    ),
]


@dataclass(kw_only=True, repr=False, eq=False)
class Sampling(Running):
    """The arguments of `sample`."""

    cdx: CdxFiles = field(kw_only=False)
    output: Annotated[AnyPath | None, SplitsOutput] = None
    shards: ShardCount
    fraction: Annotated[
        float,
        Option(
            metavar="F",
            help="Read only this fraction of the files, chosen at random (see --seed). Above 0, at most 1.",
        ),
    ] = 1.0
    replace: Replace = False
    seed: Seed = 0


@dataclass(kw_only=True, repr=False, eq=False)
class ClusterOutput:
    """Where a new cluster is built."""

    output: Annotated[AnyPath, Option("--output", "-o", metavar="CLUSTER", help="Directory of the cluster.")]


@dataclass(kw_only=True, repr=False, eq=False)
class ClusterOptions(Running):
    """How a new cluster is built. `commands.clusters.zipnum.zipnum_options` reads the split points."""

    shards: Annotated[
        int | None,
        Option(
            "--shards",
            "-s",
            min=1,
            metavar="N",
            help="Number of shards. Default: that of --splits, or else one per 64 MiB of gzipped CDX files (a"
            " plain file counts a sixth), at most 300.",
        ),
    ] = None
    splits: Annotated[
        AnyPath | None,
        Option(metavar="FILE", help="Read the split points from this file or URL (text or SequenceFile)."),
    ] = None
    seed: Seed = 0
    numlines: Annotated[int, Option(min=1, help="Lines per block.")] = 3000
    compressor: Annotated[str, Option(help="Library that compresses the blocks: libdeflate or zlib.")] = (
        "libdeflate"
    )
    level: Annotated[int, Option(min=1, max=12, help="Compression level. zlib: 9 at most.")] = 6
    location: Annotated[
        str | None,
        Option(
            metavar="BASE",
            help="Directory or URL of the shards to write to cluster.loc. Default: the absolute path of CLUSTER.",
        ),
    ] = None
    replace: Replace = False


@dataclass(kw_only=True, repr=False, eq=False)
class Zipnum(ClusterOptions, ClusterOutput):
    """The arguments of `zipnum`."""

    cdx: CdxFiles = field(kw_only=False)
    convert: Convert = False


@dataclass(kw_only=True, repr=False, eq=False)
class Building(LineOptions, ClusterOptions, ClusterOutput):
    """The arguments of `build`."""


@dataclass(kw_only=True, repr=False, eq=False)
class PublishOptions(Running):
    """How a cluster is published."""

    location: Annotated[
        str | None,
        Option(
            metavar="BASE",
            help="Directory or URL of the shards to write to cluster.loc. Default: DEST; with --index-only,"
            " CLUSTER.",
        ),
    ] = None
    archives: Annotated[
        str | None,
        Option(
            metavar="LOCATION",
            help="Write these places of the archives to archives.tsv: a directory, a URL prefix, or a path index."
            " Default: those in CLUSTER; if DEST is a URL, only those that are URLs.",
        ),
    ] = None
    title: Annotated[
        str | None,
        Option(
            metavar="TEXT",
            help="Title of the collection in metadata.yaml. Default: the existing title, or the name of the"
            " directory.",
        ),
    ] = None
    index_only: Annotated[bool, Option(help="Copy everything except the shards, which stay in CLUSTER.")] = (
        False
    )
    unfinished: Annotated[
        bool, Option(help="Accept a cluster without cluster.json; use every shard found.")
    ] = False
    replace: Replace = False


@dataclass(kw_only=True, repr=False, eq=False)
class Publishing(PublishOptions):
    """The arguments of `publish`."""

    cluster: Annotated[AnyPath, Argument("CLUSTER", "ZipNum cluster: directory, s3 or hdfs URL.")] = field(
        kw_only=False
    )
    destination: Annotated[
        AnyPath,
        Argument(
            "DEST",
            "Directory, s3 or hdfs URL to copy to. If it is CLUSTER, only the files beside the shards are written.",
        ),
    ] = field(kw_only=False)


@dataclass(kw_only=True, repr=False, eq=False)
class VerifyOptions(Running):
    """How a cluster is verified."""

    against: Annotated[
        Paths | None,
        Option(
            metavar="CDX",
            help="Compare the lines with the lines of these CDX files: file, directory, glob or URL. May be"
            " repeated.",
        ),
    ] = None
    convert: Annotated[
        bool,
        Option(help="The files of --against have 6 fields, and CLUSTER was built with --convert."),
        Needs("against"),
    ] = False
    archives: Annotated[
        AnyPath | None,
        Option(
            metavar="LOCATION",
            help="Read the record of every line. The archives are in this directory or WACZ, at this URL prefix, or"
            " listed in this path index (a text file; each line: file name, tab, path or URL).",
        ),
    ] = None
    sample: Annotated[
        int | None,
        Option(
            min=1,
            metavar="N",
            help="Read the records of N random lines only. Default of --archives: the archives.tsv of CLUSTER.",
        ),
    ] = None
    location: Annotated[
        str | None,
        Option(
            metavar="BASE",
            help="Check that cluster.loc has BASE/SHARD as the first location of each shard. Default: check that"
            " the files at all locations exist.",
        ),
    ] = None
    shard_index_loc: ShardRule = None


@dataclass(kw_only=True, repr=False, eq=False)
class Verifying(VerifyOptions):
    """The arguments of `verify`."""

    cluster: Annotated[
        AnyPath,
        Argument("CLUSTER", "ZipNum cluster: directory, URL (http, https, s3, hdfs), or its .idx file."),
    ] = field(kw_only=False)


@dataclass(kw_only=True, repr=False, eq=False)
class ServeOptions:
    """Where the archives are, the title of the collection, and the address of the server."""

    archives: Annotated[
        str | None,
        Option(
            metavar="LOCATION",
            help="Where the archives are: a directory, a URL prefix, or a path index (a text file; each line: file"
            " name, tab, path or URL). Default: the archives.tsv that build wrote to CLUSTER.",
        ),
    ] = None
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on. 0: any free port.")] = 8080
    bind: Annotated[
        str,
        Option(metavar="ADDRESS", help="IP address to listen on. 0.0.0.0: all addresses of this machine."),
    ] = "127.0.0.1"
    title: Annotated[
        str | None,
        Option(metavar="TEXT", help="Title of the collection. Default: the name of the directory."),
    ] = None
