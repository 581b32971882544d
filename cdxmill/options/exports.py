"""Options of `export`."""

from collections.abc import Iterable

from cdxmill.options.option import REPLACE, AnyPath, EngineOptions, Needs, argument, option
from cdxmill.options.queries import CaptureFilters

FORMATS = ("parquet", "csv", "cdxj", "wacz")


class Exporting(EngineOptions, CaptureFilters):
    """The arguments of `export`."""

    cluster: AnyPath = argument(
        "CLUSTER",
        "ZipNum cluster: directory, URL (http, https, s3, hdfs) or .idx file. Also a CDX or CDXJ file, or a crawl by"
        " name, such as CC-MAIN-2024-22. Several are separated by commas.",
        kw_only=False,
    )
    query: str | Iterable[str] | None = argument(
        "QUERY...",
        "URL as in lookup: URL, URL* or *.HOST; with --to wacz, several. Default: all captures.",
        default=None,
        kw_only=False,
    )
    format: str = option("--to FORMAT", "parquet, csv, cdxj or wacz.", choices=FORMATS)
    output: AnyPath = option(
        "--output -o OUTPUT",
        "parquet: a directory, s3 or hdfs URL. csv, cdxj: a file, s3 or hdfs URL, compressed if it ends in .gz; - writes"
        " to stdout. wacz: a file, s3 or hdfs URL that ends in .wacz.",
    )
    fields: str | Iterable[str] | None = option(
        "--fl --fields NAMES",
        "csv: fields to write, comma-separated, such as url,timestamp,status.",
        Needs("format=csv"),
        default=None,
    )
    to: str | None = option("--until TIME", "Last timestamp. 2014 includes all of that year.", default=None)
    partition: bool = option(
        "--partition",
        "parquet: write to a directory OUTPUT/crawl=CRAWL/subset=SUBSET for each crawl and subset in the file names of"
        " Common Crawl. Default: crawl and subset are columns.",
        Needs("format=parquet"),
        default=False,
    )
    file_lines: int = option(
        "--file-lines N",
        "parquet: most rows of a file.",
        Needs("format=parquet"),
        default=5_000_000,
        min=1000,
    )
    title: str | None = option("--title TEXT", "wacz: its title.", Needs("format=wacz"), default=None)
    description: str | None = option(
        "--description TEXT", "wacz: what it contains, as Markdown.", Needs("format=wacz"), default=None
    )
    archives: AnyPath | None = option(
        "--archives LOCATION",
        "wacz: where the archives are, as in copy. Default: those of the crawl, archives.tsv of the cluster, or the"
        " current directory.",
        Needs("format=wacz"),
        default=None,
    )
    related: bool = option(
        "--related",
        "wacz: also copy the request and metadata records beside each response.",
        Needs("format=wacz"),
        default=False,
    )
    sign_command: str | None = option(
        "--sign-command COMMAND",
        'wacz: sign it with this program. It reads {"hash": ..., "created": ...} and prints JSON with the signature.',
        Needs("format=wacz"),
        default=None,
    )
    processes: int = option(
        "--processes -p N",
        "wacz, parquet: number of processes that copy, or that write files. 0: one per core.",
        Needs("format=wacz", "format=parquet"),
        default=4,
        min=0,
    )
    engine: str = option(
        "--engine",
        "parquet: local: processes of this machine. spark: Apache Spark, with a task for each file.",
        Needs("format=parquet"),
        default="local",
        choices=("local", "spark"),
        init=False,
    )
    replace: bool = REPLACE
