"""Options of commands that make, copy, check and serve clusters."""

from typing import Any

from cdxmill.options.archives import LineOptions
from cdxmill.options.option import (
    DICTIONARY,
    REPLACE,
    SEED,
    AnyPath,
    EngineOptions,
    Excludes,
    Needs,
    Options,
    Paths,
    Running,
    argument,
    option,
)
from cdxmill.options.queries import SHARD_RULE

CONVERT: Any = option(
    "--convert",
    "Convert CDX lines with 6 fields (key timestamp url length offset file) to CDXJ.",
    default=False,
)
SPLITS_OUTPUT = (
    "--output -o FILE",
    "Text file to write, such as splits.txt: path, s3 or hdfs URL. splits.seq is written beside it.",
)


class Sampling(Running):
    """The arguments of `sample`."""

    cdx: Paths = argument(
        "CDX...", "CDX files, directories, globs, URLs or pipes; - is standard input.", kw_only=False
    )
    output: AnyPath | None = option(*SPLITS_OUTPUT, default=None)
    shards: int = option("--shards -s", "Number of shards.", min=1)
    fraction: float = option(
        "--fraction F",
        "Read only this fraction of the files, chosen at random (see --seed). Above 0, at most 1.",
        default=1.0,
    )
    replace: bool = REPLACE
    seed: int = SEED


class ClusterOutput(Options):
    """Where a new cluster is built."""

    output: AnyPath = option("--output -o CLUSTER", "Directory of the cluster.")


class ClusterOptions(Running):
    """How a new cluster is built. `commands.clusters.zipnum.zipnum_options` reads the split points."""

    shards: int | None = option(
        "--shards -s N",
        "Number of shards. Default: that of --splits, or else one per 64 MiB of gzipped CDX files (a plain file"
        " counts a sixth), at most 300.",
        default=None,
        min=1,
    )
    splits: AnyPath | None = option(
        "--splits FILE", "Read the split points from this file or URL (text or SequenceFile).", default=None
    )
    seed: int = SEED
    numlines: int = option("--numlines", "Lines per block.", default=3000, min=1)
    compressor: str = option(
        "--compressor", "Library that compresses the blocks: zlib-ng, zlib or libdeflate.", default="zlib-ng"
    )
    level: int | None = option(
        "--level",
        "Compression level, 1 to 9; libdeflate: to 12. Default: 5; zlib and libdeflate: 6.",
        default=None,
        min=1,
        max=12,
    )
    section_lines: int | None = option(
        "--section-lines N",
        "Lines of a section. A lookup decompresses sections, not whole blocks. 0: no sections, as with libdeflate."
        " Default: 500.",
        default=None,
        min=0,
    )
    location: str | None = option(
        "--location BASE",
        "Directory or URL of the shards to write to cluster.loc. Default: the absolute path of CLUSTER.",
        default=None,
    )
    replace: bool = REPLACE


class Zipnum(ClusterOptions, EngineOptions, ClusterOutput):
    """The arguments of `zipnum`."""

    cdx: Paths = argument(
        "CDX...", "CDX files, directories, globs, URLs or pipes; - is standard input.", kw_only=False
    )
    convert: bool = CONVERT


class Building(LineOptions, ClusterOptions, EngineOptions, ClusterOutput):
    """The arguments of `build`."""


class Publishing(Running):
    """The arguments of `publish`."""

    cluster: AnyPath = argument("CLUSTER", "ZipNum cluster: directory, s3 or hdfs URL.", kw_only=False)
    destination: AnyPath = argument(
        "DEST",
        "Directory, s3 or hdfs URL to copy to. If it is CLUSTER, only the files beside the shards are written.",
        kw_only=False,
    )

    location: str | None = option(
        "--location BASE",
        "Directory or URL of the shards to write to cluster.loc. Default: DEST; with --index-only, CLUSTER.",
        default=None,
    )
    archives: str | None = option(
        "--archives LOCATION",
        "Write these places of the archives to archives.tsv: a directory, a URL prefix, or a path index. Default:"
        " those in CLUSTER; if DEST is a URL, only those that are URLs.",
        default=None,
    )
    title: str | None = option(
        "--title TEXT",
        "Title of the collection in metadata.yaml. Default: the existing title, or the name of the directory.",
        default=None,
    )
    index_only: bool = option(
        "--index-only", "Copy everything except the shards, which stay in CLUSTER.", default=False
    )
    unfinished: bool = option(
        "--unfinished", "Accept a cluster without cluster.json; use every shard found.", default=False
    )
    replace: bool = REPLACE


class Verifying(Running):
    """The arguments of `verify`."""

    cluster: AnyPath = argument(
        "CLUSTER", "ZipNum cluster: directory, URL (http, https, s3, hdfs), or its .idx file.", kw_only=False
    )
    more: list[str] = argument(
        "NEW...", "The archive to compare with; with --against, more files for it.", default=(), init=False
    )

    against: Paths | None = option(
        "--against CDX",
        "Compare the lines with the lines of these CDX files: file, directory, glob or URL. May be repeated.",
        default=None,
    )
    convert: bool = option(
        "--convert",
        "The files of --against have 6 fields, and CLUSTER was built with --convert.",
        Needs("against"),
        default=False,
    )
    archives: AnyPath | None = option(
        "--archives LOCATION",
        "Read the record of every line. The archives are in this directory or WACZ, at this URL prefix, or listed in"
        " this path index (a text file; each line: file name, tab, path or URL).",
        default=None,
    )
    sample: int | None = option(
        "--sample N",
        "Read the records of N random lines only. Default of --archives: the archives.tsv of CLUSTER.",
        default=None,
        min=1,
    )
    location: str | None = option(
        "--location BASE",
        "Check that cluster.loc has BASE/SHARD as the first location of each shard. Default: check that the files at"
        " all locations exist.",
        default=None,
    )
    shard_index_loc: tuple[str, str] | None = SHARD_RULE
    any_digest: bool = option(
        "--any-digest",
        "Of two archives: accept records whose bytes do not have the digest in their header.",
        Excludes("against", "archives", "sample", "location"),
        default=False,
        init=False,
    )
    dictionary: AnyPath | None = DICTIONARY


class Serving(Options):
    """The arguments of `serve`."""

    cluster: str = argument("CLUSTER", "ZipNum cluster: directory.")

    archives: str | None = option(
        "--archives LOCATION",
        "Where the archives are: a directory, a URL prefix, or a path index (a text file; each line: file name, tab,"
        " path or URL). Default: the archives.tsv that build wrote to CLUSTER.",
        default=None,
    )
    port: int = option("--port", "Port to listen on. 0: any free port.", default=8080, min=0, max=65535)
    bind: str = option(
        "--bind ADDRESS",
        "IP address to listen on. 0.0.0.0: all addresses of this machine.",
        default="127.0.0.1",
    )
    title: str | None = option(
        "--title TEXT", "Title of the collection. Default: the name of the directory.", default=None
    )
    config_only: str | None = option(
        "--config-only DIR",
        "Write config.yaml to this directory and do not start pywb.",
        default=None,
    )
    watch: str | None = option(
        "--watch DIR",
        "Add the archives that appear in this directory to CLUSTER, as add does, while pywb runs.",
        Excludes("config_only"),
        default=None,
    )
    settle: int = option(
        "--settle N",
        "Seconds for which a file in --watch DIR must not have changed before it is added.",
        Needs("watch"),
        default=10,
        min=0,
    )
    processes: int = option(
        "--processes -p",
        "Number of processes that index archives in --watch DIR. 0: one per core.",
        Needs("watch"),
        default=1,
        min=0,
    )
    replace: bool = option("--replace", "Replace an existing output.", Needs("config_only"), default=False)
