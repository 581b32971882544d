"""Options of commands that make, copy and check clusters."""

from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.options.archives import LineOptions
from cdxmill.options.option import AnyPath, Argument, Option, Paths
from cdxmill.options.running import Replace, Running, Seed

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
