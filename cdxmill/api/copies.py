"""`copy`: the captures of queries, in new archives."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypedDict, Unpack

from cdxmill.api.arguments import Path, Paths, check_names, optional_path, path_list, process_count, text_list
from cdxmill.api.results import CopyResult
from cdxmill.commands.copying.copy import CopyOptions
from cdxmill.commands.copying.copy import copy as copy_captures
from cdxmill.commands.copying.plan import ask
from cdxmill.running.failures import Failures
from cdxmill.search.query import Query


class CopyArguments(TypedDict, total=False):
    """Which captures are copied, and how: the options of `cdxmill copy` with these names. `size` is in bytes."""

    match_type: str
    from_ts: str
    to: str
    filter: str | Iterable[str]
    collapse: str
    limit: int
    keep_arc: bool
    related: bool
    originals: bool
    size: int
    rate: float
    processes: int


def copy(
    source: Paths,
    queries: str | Iterable[str] = (),
    *,
    output: Path,
    archives: Path | None = None,
    **options: Unpack[CopyArguments],
) -> CopyResult:
    """Copy the captures of one query or several to new archives in the directory `output`, also an s3 or hdfs URL.

    `source` is one or several of: a cluster, a crawl by name, a prefix B-tree, a file with CDX lines. Without queries,
    all lines of files are copied. Captures that `output` has already are not copied again; those that could not be
    copied are in the failures of the result, and in `output`/copy-failures.tsv. Raises UsageError for invalid
    arguments, InputError if a source cannot be read, StoppedError if `output` cannot be written.
    """
    check_names(options, CopyArguments)
    query = Query(
        match_type=options.get("match_type"),
        first=options.get("from_ts"),
        last=options.get("to"),
        filters=text_list(options.get("filter", ())),
        collapse=options.get("collapse"),
        limit=options.get("limit"),
    )
    how = CopyOptions(
        processes=process_count(options.get("processes", 0)),
        keep_arc=options.get("keep_arc", False),
        related=options.get("related", False),
        originals=options.get("originals", False),
        most=options.get("size", CopyOptions.most),
        rate=options.get("rate"),
        quiet=True,
    )
    asked = ask(",".join(path_list(source)), optional_path(archives), text_list(queries), query)
    failures = Failures(printed=False)
    done = copy_captures(asked, os.fspath(output), how, failures)
    return CopyResult(*done[:-1], failures.items)
