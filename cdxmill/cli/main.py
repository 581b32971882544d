"""The command line: options, help, and what becomes of errors. The work is in commands/.

Modules of a subcommand are imported when it runs, so that the command starts quickly.
"""

from __future__ import annotations

import os
import signal
import sys
from copy import copy
from types import FrameType
from typing import Annotated

import click
import typer

from cdxmill import __version__
from cdxmill.cli import cluster_commands
from cdxmill.cli.arguments import (
    Archives,
    Cdx9,
    Cdx11,
    CdxFiles,
    CompressorOption,
    DirRoot,
    Fraction,
    IndexOnly,
    KeepWww,
    Level,
    Location,
    ManifestOption,
    Minimal,
    NewCluster,
    NumLines,
    PostAppend,
    Processes,
    PublishedLocation,
    Quiet,
    Records,
    Root,
    Seed,
    Shards,
    Splits,
    SplitsOutput,
    Title,
    Unfinished,
    Unsurt,
    archives_of,
    cdx_files_of,
    index_options,
    processes_of,
    zipnum_options,
)
from cdxmill.cli.lookup import LookupOptions, print_answers, takes_options
from cdxmill.cli.output import FAILED, OK, STOPPED, USAGE, ClosedPipe, standard_output
from cdxmill.errors import CdxmillError, InputError, UsageError

INTERRUPTED = 128 + signal.SIGINT

EXIT_STATUS = (
    "Exit status: 0 all well (also where nothing was found), 1 some inputs failed or damage was found"
    " (the rest is done and usable), 2 wrong usage, 3 stopped (no final output; run it again),"
    " 130 or 143 on a signal."
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Turns web archives into CDX indexes and ZipNum clusters, and indexes into answers.",
    epilog=EXIT_STATUS,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cdxmill {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    del version


@app.command("index", epilog=EXIT_STATUS)
def index(  # noqa: PLR0913 - one parameter an option
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the .cdx.gz files, also an s3 or hdfs URL, or - for one stream on stdout.",
        ),
    ],
    inputs: Archives = None,
    manifest: ManifestOption = None,
    root: Root = None,
    dir_root: DirRoot = None,
    processes: Processes = 0,
    skip_existing: Annotated[
        bool,
        typer.Option("--skip-existing", help="Leave out archives whose index is there, newer and whole."),
    ] = False,
    cdx11: Cdx11 = False,
    cdx9: Cdx9 = False,
    records: Records = None,
    post_append: PostAppend = False,
    minimal: Minimal = False,
    unsurt: Unsurt = False,
    keep_www: KeepWww = False,
    quiet: Quiet = False,
) -> int:
    """Index archives: a sorted .cdx.gz for each, or one sorted stream.

    INPUT is an archive, a folder that is searched to the bottom, a glob, or a file, http(s), s3 or hdfs
    URL: WARC and ARC, gzip, Zstandard or plain, WAT and WET. An output keeps the path of its input.
    A record gets a line only if its byte range alone holds exactly that record; all else is named on
    stderr and in DIR/failures.tsv; where DIR is a URL, in a file beside each output, _NAME.failures.
    """
    from cdxmill.commands.index import index_to_folder, index_to_stream
    from cdxmill.commands.summaries import tell_index
    from cdxmill.inputs.output_names import output_names
    from cdxmill.running.failures import Failures

    archives = archives_of(inputs, manifest, root, dir_root)
    options = index_options(
        processes, skip_existing, quiet, cdx11, cdx9, records, post_append, minimal, unsurt, keep_www
    )
    failures = Failures()
    if output == "-":
        with standard_output() as out:
            summary = index_to_stream(archives, out, options, failures)
    else:
        summary = index_to_folder(output_names(archives), output, options, failures)
    tell_index(summary, failures, output, quiet)
    return FAILED if failures.count else OK


@app.command("sample", epilog=EXIT_STATUS)
def sample(
    cdx: CdxFiles,
    output: SplitsOutput,
    shards: Annotated[int, typer.Option("--shards", "-s", min=1, help="Number of shards to divide into.")],
    fraction: Fraction = 1.0,
    seed: Seed = 0,
    processes: Processes = 0,
    quiet: Quiet = False,
) -> int:
    """Find split points that divide CDX lines into even shards.

    CDX is a file, gzip or plain, sorted or not, a folder of such files, or a glob. One pass takes a
    uniform sample: each line has the same chance, whatever the size of its file. Written are
    `<urlkey> <timestamp>`, one a line, and the same as a Hadoop SequenceFile, which ends in .seq.
    With --fraction whole files are left out: enough where each holds URLs of all kinds, as the index of an
    archive does, and not where each holds a range of the keys, as a shard does.
    """
    from cdxmill.commands.sample import sample_files
    from cdxmill.inputs.split_files import write_splits
    from cdxmill.running.failures import Failures

    failures = Failures()
    points = sample_files(cdx_files_of(cdx), shards, seed, processes_of(processes), failures, quiet, fraction)
    write_splits(points, output)
    return FAILED if failures.count else OK


@app.command("zipnum", epilog=EXIT_STATUS)
def zipnum(  # noqa: PLR0913
    cdx: CdxFiles,
    output: NewCluster,
    shards: Shards = None,
    processes: Processes = 0,
    splits: Splits = None,
    seed: Seed = 0,
    numlines: NumLines = 3000,
    compressor: CompressorOption = "libdeflate",
    level: Level = 6,
    location: Location = None,
    convert: Annotated[
        bool,
        typer.Option(
            "--convert", help="Turn CDX lines with 6 fields (key ts url length offset file) into CDXJ."
        ),
    ] = False,
    quiet: Quiet = False,
) -> int:
    """Build a ZipNum cluster from CDX files.

    CDX is a file, gzip or plain, sorted or not, a folder of such files, or a glob. All of them hold
    one kind of lines: CDXJ, or CDX with one number of fields. The cluster is the sorted set of
    all lines, in shards of gzip blocks with a secondary index. A damaged file adds no line and is named.
    """
    from cdxmill.commands.summaries import tell_cluster
    from cdxmill.commands.zipnum import build_cluster
    from cdxmill.running.failures import Failures

    failures = Failures()
    options = zipnum_options(
        shards, splits, seed, numlines, compressor, level, location, convert, processes, quiet
    )
    summary = build_cluster(cdx_files_of(cdx), output, options, failures)
    tell_cluster(summary, output, quiet)
    return FAILED if failures.count else OK


@app.command("build", epilog=EXIT_STATUS)
def build(  # noqa: PLR0913
    output: NewCluster,
    inputs: Archives = None,
    shards: Shards = None,
    processes: Processes = 0,
    manifest: ManifestOption = None,
    root: Root = None,
    dir_root: DirRoot = None,
    splits: Splits = None,
    seed: Seed = 0,
    numlines: NumLines = 3000,
    compressor: CompressorOption = "libdeflate",
    level: Level = 6,
    location: Location = None,
    cdx11: Cdx11 = False,
    cdx9: Cdx9 = False,
    records: Records = None,
    post_append: PostAppend = False,
    minimal: Minimal = False,
    unsurt: Unsurt = False,
    keep_www: KeepWww = False,
    quiet: Quiet = False,
) -> int:
    """Index archives and build a ZipNum cluster of them, in one go.

    INPUT is an archive, a folder that is searched to the bottom, a glob, or a file, http(s), s3 or hdfs URL.
    The index of each archive is kept in CLUSTER/cdx. Started again, it indexes only what is missing.
    """
    from cdxmill.commands.build import build as build_all
    from cdxmill.commands.summaries import tell_build
    from cdxmill.running.failures import Failures

    archives = archives_of(inputs, manifest, root, dir_root)
    indexing = index_options(
        processes, False, quiet, cdx11, cdx9, records, post_append, minimal, unsurt, keep_www
    )
    options = zipnum_options(
        shards, splits, seed, numlines, compressor, level, location, False, processes, quiet
    )
    failures = Failures()
    summary = build_all(archives, output, indexing, options, failures)
    tell_build(summary, failures, output, quiet)
    return FAILED if failures.count else OK


@app.command("publish", epilog=EXIT_STATUS)
def publish(  # noqa: PLR0913
    cluster: Annotated[
        str, typer.Argument(metavar="CLUSTER", help="Folder of a ZipNum cluster, or its s3 or hdfs URL.")
    ],
    dest: Annotated[
        str,
        typer.Argument(
            metavar="DEST", help="Folder, s3 or hdfs URL; CLUSTER again: only the index is written."
        ),
    ],
    location: PublishedLocation = None,
    title: Title = None,
    index_only: IndexOnly = False,
    unfinished: Unfinished = False,
    processes: Processes = 0,
    quiet: Quiet = False,
) -> int:
    """Check a cluster, copy it, and write its index there.

    CLUSTER is what a job or zipnum has left, DEST where it is served from. Shards and parts have to fit
    cluster.json and to be in order; then shards and parts are copied and cluster.idx with line
    numbers, cluster.summary, cluster.loc, metadata.yaml (in the folder above where DEST is named
    indexes) and, last, cluster.json are written. Run again, it copies only the shards that are not there
    yet: one is if it has the right size and an earlier run put it there with the SHA-256 of cluster.json.
    """
    from cdxmill.commands.publish import PublishOptions
    from cdxmill.commands.publish import publish as publish_cluster
    from cdxmill.commands.summaries import tell_published

    options = PublishOptions(location, title, index_only, unfinished, processes_of(processes), quiet)
    tell_published(publish_cluster(cluster, dest, options), dest, quiet)
    return OK


@app.command("lookup", epilog=EXIT_STATUS)
@takes_options
def lookup(options: LookupOptions) -> int:
    """Print the lines that a cluster has for a URL.

    CLUSTER is cdxmill's or another's, also behind a network; URL may stand for a prefix, host or domain. The words
    are those of pywb's CDX server, and so are the answers. Nothing found is no error; what cannot be read, or is
    damaged, is one. Many URLs (--input) are answered in their order, each block read once.
    """
    with standard_output() as out:
        is_well = print_answers(options, out, lambda told: typer.echo(f"cdxmill: {told}", err=True))
    return OK if is_well else FAILED


app.command("get", epilog=EXIT_STATUS)(cluster_commands.get)
app.command("verify", epilog=EXIT_STATUS)(cluster_commands.verify)
app.command("split-points", epilog=EXIT_STATUS)(cluster_commands.split_points)


class _Terminated(BaseException):
    """SIGTERM; unwinds like Ctrl-C."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


def _app_for(arguments: list[str] | None) -> typer.Typer:
    """The app with only the command that is asked for: typer looks at all options of all it has, a tenth of a start."""
    name = (sys.argv[1:] if arguments is None else arguments)[:1]
    asked = [known for known in app.registered_commands if [known.name] == name]
    chosen = copy(app)
    chosen.registered_commands = asked or app.registered_commands
    return chosen


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        result = _app_for(arguments)(arguments, prog_name="cdxmill", standalone_mode=False)
        if result == INTERRUPTED:  # typer's answer to Ctrl-C
            raise KeyboardInterrupt
        return result if isinstance(result, int) else OK
    except click.ClickException as error:
        return _usage(error)
    except UsageError as error:
        return _fail(str(error), USAGE)
    except InputError as error:
        return _fail(str(error), FAILED)
    except CdxmillError as error:
        return _fail(str(error), STOPPED)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except _Terminated:
        return _fail("terminated", 128 + signal.SIGTERM)
    except ClosedPipe:
        return _closed_pipe()
    except Exception as error:
        return _bug(error)


def _usage(error: click.ClickException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "cdxmill"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(error.format_message(), file=sys.stderr)
        return USAGE
    return _fail(f"{error.format_message().rstrip('.')}; see {path} --help", USAGE)


def _fail(text: str, status: int) -> int:
    print("cdxmill: " + text.replace("\n", " "), file=sys.stderr)
    return status


def _closed_pipe() -> int:
    """Leave nothing that Python would try to write at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def _bug(error: Exception) -> int:
    if os.environ.get("CDXMILL_TRACEBACK"):
        raise error
    what = f"{type(error).__name__}: {error}"
    return _fail(
        f"a fault of cdxmill itself ({what}); set CDXMILL_TRACEBACK=1 for the details and report it", STOPPED
    )
