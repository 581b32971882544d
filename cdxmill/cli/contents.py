"""The commands that read what is in archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdxmill.cli.command import check_no_pipe, standard_output
from cdxmill.errors import UsageError
from cdxmill.options.archives import ArchiveInputs, CountOptions, Training
from cdxmill.options.option import Excludes, Existing, Running, option

if TYPE_CHECKING:
    from cdxmill.commands.scanning.options import ScanOptions
    from cdxmill.running.failures import Failures


_WARC = ("warc.gz", "warc.zst")
_WHOLE = tuple(f"to={name}" for name in _WARC)
"""Formats of records as they are, which have no fields."""


class ScanArguments(ArchiveInputs, Existing, Running):
    """The command line of `scan`."""

    output: str = option("--output -o DIR", "Directory, s3 or hdfs URL for the results.")
    where: list[str] | None = option(
        "--where EXPRESSION",
        "Conditions such as status=200, url~REGEX, title:TEXT or host@FILE, with and, or, not and parentheses. May"
        " be repeated: then all must hold. Default: all records.",
        default=None,
    )
    extract: str | None = option(
        "--extract NAMES",
        "Fields to write, comma-separated. Default: url,time,type,status,mime,offset,length.",
        Excludes(*_WHOLE),
        default=None,
    )
    find: list[str] | None = option(
        "--find FILTER",
        "NAME=FIELD~REGEX: write all matches in a field, or of the groups in REGEX. May be repeated.",
        Excludes(*_WHOLE),
        default=None,
    )
    call: list[str] | None = option(
        "--call FUNCTION",
        "MODULE:FUNCTION of your own. It gets each matching record. If it returns a dict, its items are written; if"
        " False, the record is skipped. May be repeated.",
        default=None,
    )
    call_page: list[str] | None = option(
        "--call-page FUNCTION", "As --call, but it gets the parsed page, if there is one.", default=None
    )
    to: str = option(
        "--to FORMAT",
        "jsonl, jsonl.gz, jsonl.zst, parquet, or, for the matching records as they are, warc.gz or warc.zst.",
        default="jsonl.gz",
        choices=("jsonl", "jsonl.gz", "jsonl.zst", "parquet", *_WARC),
    )
    captures: str | None = option(
        "--captures FILE",
        "Scan only the records that these index lines name, as lookup prints them: path, URL, or - for standard"
        " input. INPUT has to contain their archives. A line whose record has another URL or time is reported.",
        default=None,
    )
    explain: bool = option(
        "--explain", "Print the order of the conditions, and what was measured of each.", default=False
    )
    timeout: int = option(
        "--timeout N", "Seconds for one record. Then it is skipped and reported.", default=60, min=1
    )
    memory: int = option("--memory N", "MiB of memory that one process may use.", default=2048, min=64)

    def options(self) -> ScanOptions:
        """What is searched and written. Raises UsageError."""
        from cdxmill.commands.scanning.options import ScanOptions
        from cdxmill.outputs.existing import rule_of
        from cdxmill.stages.scan.fields import DEFAULT

        return ScanOptions(
            where=tuple(self.where or ()),
            extract=DEFAULT if self.extract is None else self.extract,
            finds=tuple(self.find or ()),
            calls=tuple(self.call or ()),
            page_calls=tuple(self.call_page or ()),
            to=self.to,
            seconds=self.timeout,
            memory=self.memory << 20,
            processes=self.processes,
            existing=rule_of(self),
            quiet=self.quiet,
        )


def scan(arguments: ScanArguments, failures: Failures) -> str:
    """Search archives for records, and write what you need of them.

    INPUT is a WARC, WAT, WET or ARC file, directory, glob or URL (http, https, s3, hdfs). cdxmill writes one file per
    input, with the same relative path. A line of it is a JSON object with the fields of a record that matches.

    Conditions that need only the header of a record are tested first, those that need its page or language last,
    whatever their order in EXPRESSION. With --explain, cdxmill prints the order.

    A record that cannot be read, takes too long or makes your function fail is skipped, and reported on stderr and in
    DIR/failures.tsv, or, if DIR is a URL, in a file beside the output, _NAME.failures. If you run it again, outputs that
    are up to date are kept. cdxmill never overwrites any other output unless you say --update (write those that
    are older or failed) or --replace (write all again).

    Examples:
        cdxmill scan -o found --where "status=200 and mime=text/html" warcs/
        cdxmill scan -o en --where lang=en --extract url,title,links warcs/
        cdxmill scan -o some --captures cdx/iana.cdx.gz warcs/
        cdxmill scan -o part --where host=www.iana.org --to warc.gz warcs/
    """
    from cdxmill.commands.scanning.scan import scan, scanned_name
    from cdxmill.inputs.archives import find_archives
    from cdxmill.outputs.names import output_names
    from cdxmill.outputs.record import without_outputs

    check_no_pipe(arguments.inputs, "an archive from a pipe has no name for its output; give a file")
    options = arguments.options()
    archives, to = find_archives(arguments, failures), arguments.to
    archives = without_outputs(archives, arguments.output, failures.note)
    names = output_names(archives, lambda path: scanned_name(path, to), f".{to}")
    summary = scan(names, arguments.output, options, failures, arguments.captures)
    if arguments.explain:
        for measured in summary.measured:
            failures.note(str(measured))
    return str(summary)


class CountArguments(ArchiveInputs, CountOptions):
    """The command line of `count`."""

    output: str = option(
        "--output -o FILE",
        "File to write: path, s3 or hdfs URL. It is gzipped if its name ends in .gz. - writes to stdout.",
    )


def count(arguments: CountArguments, failures: Failures) -> str:
    """Count HTML tags, web servers, words, or links between hosts.

    WHAT is tags, servers, words or links. INPUT is an archive, directory, glob, URL (http, https, s3, hdfs) or pipe (- is standard input). Tags are counted in
    the HTML pages of WARC and ARC files, servers in WAT, WARC and ARC files, words in WET files, links in WAT, WARC and
    ARC files. FILE gets one line per item, <item> TAB <count>. The lines are sorted as bytes.

    Damaged records are skipped and reported on stderr. Of an archive that cannot be read to its end, nothing is
    counted. The exit status is 1 then.

    Examples:
        cdxmill count tags -o tags.tsv warcs/
        cdxmill count servers -o - warcs/ | sort -t "$(printf '\\t')" -k 2 -n -r | head
    """
    from cdxmill.commands.count import count_to_file, count_to_stream
    from cdxmill.inputs.archives import find_archives
    from cdxmill.inputs.pipes import Pipes
    from cdxmill.stages.counting.counters import COUNTERS

    if arguments.what not in COUNTERS:
        raise UsageError(f"invalid WHAT {arguments.what!r}: expected {', '.join(COUNTERS)}")
    with Pipes(failures, quiet=arguments.quiet) as pipes:
        archives = find_archives(arguments, failures, pipes)
        if arguments.output == "-":
            with standard_output() as out:
                summary = count_to_stream(archives, out, arguments, failures)
        else:
            summary = count_to_file(archives, arguments.output, arguments, failures)
    return str(summary)


def train_dictionary(arguments: Training, failures: Failures) -> str:
    """Train a Zstandard dictionary for archives.

    INPUT is a WARC or ARC file, directory, glob or URL. Give archives of one crawl and of one kind, such as WARC
    or WAT, and at least two of them. cdxmill reads all of them and takes a uniform sample of their records: 128 MiB at
    most, the first 128 KiB of each record. Some archives are held out, so the dictionary is not trained on
    them. cdxmill prints what it saves there.

    FILE is a dictionary that zstd and its libraries can read. FILE.json has its statistics.

    Examples:
        cdxmill train-dictionary -o crawl.dict warcs/
    """
    from cdxmill.commands.train_dictionary import train_dictionary as train
    from cdxmill.inputs.archives import find_archives

    return str(train(find_archives(arguments, failures), arguments, failures))
