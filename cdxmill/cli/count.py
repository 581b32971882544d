"""`cdxmill count`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cdxmill.cli.command import Printing, command, print_summary, standard_output
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.options.archives import ArchiveInputs, CountOptions
from cdxmill.options.option import Option


@dataclass(kw_only=True, repr=False, eq=False)
class CountArguments(Printing, ArchiveInputs, CountOptions):
    """The command line of `count`."""

    output: Annotated[
        str,
        Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write: path, s3 or hdfs URL. It is gzipped if its name ends in .gz. - writes to stdout.",
        ),
    ]


@command
def count(arguments: CountArguments) -> int:
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
    from cdxmill.inputs.pipes import open_pipes
    from cdxmill.running.failures import Failures
    from cdxmill.stages.counting.counters import COUNTERS

    if arguments.what not in COUNTERS:
        raise UsageError(f"invalid WHAT {arguments.what!r}: expected {', '.join(COUNTERS)}")
    failures = Failures()
    with open_pipes(failures, quiet=arguments.quiet) as pipes:
        archives = find_archives(arguments, failures, pipes)
        if arguments.output == "-":
            with standard_output() as out:
                summary = count_to_stream(archives, out, arguments, failures)
        else:
            summary = count_to_file(archives, arguments.output, arguments, failures)
    print_summary(summary, quiet=arguments.quiet)
    return FAILED if failures.count else OK
