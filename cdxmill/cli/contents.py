"""The commands that read what is in archives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdxmill.cli.command import open_engine, standard_output
from cdxmill.options.contents import Counting, Scanning
from cdxmill.options.option import path_list

if TYPE_CHECKING:
    from cdxmill.running.failures import Failures


def scan(arguments: Scanning, failures: Failures) -> str:
    """Search archives for records, and write what you need of them.

    INPUT is a WARC, WAT, WET or ARC file, directory, glob or URL (http, https, s3, hdfs). cdxmill writes one file per
    input, with the same relative path. A line of it is a JSON object with the fields of a record that matches.

    Conditions that need only the header of a record are tested first, those that need its page or language last,
    whatever their order in EXPRESSION. With --explain, cdxmill prints the order.

    A record that cannot be read, takes too long or makes your function fail is skipped, and reported on stderr and in
    DIR/failures.tsv, or, if DIR is a URL, in a file beside the output, _NAME.failures. With --to parquet, these lists are
    in DIR/_cdxmill. If you run it again, outputs that are up to date are kept. cdxmill never overwrites any other output
    unless you say --update (write those that are older or failed) or --replace (write all again).

    Examples:
        cdxmill scan -o found --where "status=200 and mime=text/html" warcs/
        cdxmill scan -o en --where lang=en --extract url,title,links warcs/
        cdxmill scan -o some --captures cdx/iana.cdx.gz warcs/
        cdxmill scan -o part --where host=www.iana.org --to warc.gz warcs/
    """
    from cdxmill.commands.scanning.ask import scan_asked

    with open_engine(arguments) as spark:
        given = () if spark is None else (spark.scan, spark.open_all)
        summary = scan_asked(arguments, failures, *given)
    if arguments.explain:
        for measured in summary.measured:
            failures.note(str(measured))
    return str(summary)


def count(arguments: Counting, failures: Failures) -> str:
    """Count tags, servers, words, links, or what your code finds.

    WHAT is tags, servers, words or links. With --call, there is no WHAT. INPUT is an archive, directory, glob, URL (http, https, s3, hdfs) or pipe (- is standard input). Tags are counted in
    the HTML pages of WARC and ARC files, servers in WAT, WARC and ARC files, words in WET files, links in WAT, WARC and
    ARC files. FILE gets one line per item, <item> TAB <count>. The lines are sorted as bytes.

    Damaged records, and those that take too long, are skipped and reported on stderr. Of an archive that cannot be read
    to its end, nothing is counted. The exit status is 1 then.

    Examples:
        cdxmill count tags -o tags.tsv warcs/
        cdxmill count servers -o - warcs/ | sort -t "$(printf '\\t')" -k 2 -n -r | head
    """
    from cdxmill.commands.count import count_asked

    if arguments.call is not None and (first := arguments.what) is not None:  # it is the first INPUT
        arguments.what, arguments.inputs = None, [first, *path_list(arguments.inputs)]
    with open_engine(arguments) as spark:
        given = () if spark is None else (spark.counts, spark.open_all)
        if arguments.output != "-":
            return str(count_asked(arguments, str(arguments.output), failures, *given))
        with standard_output() as out:
            return str(count_asked(arguments, out, failures, *given))
