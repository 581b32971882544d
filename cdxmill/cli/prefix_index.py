"""`cdxmill prefix-index build` and `search`: their options, their help and the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdxmill.cli.command import command, print_error, standard_output
from cdxmill.errors import FAILED, OK, UsageError
from cdxmill.options.option import argument, option
from cdxmill.options.trees import TreeBuilding, TreeQuery

if TYPE_CHECKING:
    from cdxmill.running.failures import Failures


def build(arguments: TreeBuilding, failures: Failures) -> str:
    """Build a prefix B-tree from sorted lines.

    INPUT is a sorted CDX or CDXJ file, a ZipNum cluster, or a file with a line for each key: key, tab, pointer. A
    pointer is a number for each field of the layout, or all its bytes in hexadecimal digits. Several inputs are
    merged. FILE has the layout of the pointers and the names of the archives, too, unless the layout is classic.

    If an input is corrupt or not sorted, or a line cannot be stored, nothing is written.

    Examples:
        cdxmill prefix-index build -o all.tree all.cdxj
        cdxmill prefix-index build -o cluster.tree cluster
    """
    from cdxmill.commands.prefix_index import build_tree

    return f"{arguments.output}: {build_tree(arguments, failures)}"


class TreeSearchArguments(TreeQuery):
    """The command line of `prefix-index search`."""

    file: str = argument(
        "FILE",
        "Prefix B-tree: path or URL (http, https, s3, hdfs).",
    )
    query: str | None = argument(
        "QUERY",
        "URL, URL* for all URLs that start with it, or *.HOST for a domain with its subdomains or a top-level"
        " domain.",
        default=None,
    )
    input: str | None = option(
        "--input -i FILE",
        "Search for the queries in this file, one per line; - reads standard input.",
        default=None,
    )


def search(arguments: TreeSearchArguments) -> int:
    """Print the items of a query in a prefix B-tree.

    QUERY is a URL, prefix or domain, as in cdxmill lookup. FILE is read in small parts: at most three reads lead to the
    first item. Captures are printed as CDXJ lines with filename, offset and length, in the order of their keys;
    other items as key, tab, values. If nothing is found, nothing is printed and the exit status is 0.

    Examples:
        cdxmill prefix-index search all.tree http://www.iana.org/
        cdxmill prefix-index search all.tree '*.org' --filter =status:200 --limit 9
    """
    from cdxmill.cli.lookup import urls_of
    from cdxmill.search.lookup import in_order
    from cdxmill.search.prefix_index import open_prefix_index
    from cdxmill.search.tree_query import PreparedTreeQuery, search_tree

    queries = urls_of(arguments.query, arguments.input, "QUERY")
    errors: list[UsageError] = []

    def report(error: UsageError) -> None:
        errors.append(error)
        print_error(str(error))

    many = arguments.input is not None
    with (
        in_order(arguments.file, [arguments.query]),
        open_prefix_index(arguments.file, arguments.layout) as index,
        standard_output() as out,
    ):
        prepared = PreparedTreeQuery(arguments, index.layout)
        if prepared.header is not None:
            out.write(prepared.header + b"\n")
        for lines in search_tree(index, queries, prepared, report if many else None):
            out.write(b"\n".join([*lines, b""]))
    return FAILED if errors else OK


prefix_index = click.Group(
    "prefix-index",
    help="Build and search a prefix B-tree, an index in one file.",
    commands={"build": command(build), "search": command(search)},
    no_args_is_help=True,
)
