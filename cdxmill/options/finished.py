"""Options of commands that copy, check and serve finished clusters."""

from dataclasses import dataclass, field
from typing import Annotated

from cdxmill.options.option import AnyPath, Argument, Needs, Option, Paths
from cdxmill.options.running import Replace, Running, ShardRule


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
