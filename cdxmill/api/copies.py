"""`copy`: the captures of queries, in new archives."""

from __future__ import annotations

import os
from dataclasses import field

from cdxmill.api.calls import takes
from cdxmill.api.results import CopyResult
from cdxmill.commands.copying.copy import copy as copy_captures
from cdxmill.commands.copying.plan import ask
from cdxmill.options.option import AnyPath, text_list
from cdxmill.options.records import Copying
from cdxmill.running.failures import Failures


class CopyCall(Copying):
    """The parameters of `copy`."""

    output: AnyPath = field()


@takes(CopyCall)
def copy(asked: CopyCall) -> CopyResult:
    """Copy the captures of one query or several to new archives in the directory `output`, also an s3 or hdfs URL.

    `source` is one or several of: a cluster, a crawl by name, a prefix B-tree, a file with CDX lines. Without queries,
    all lines of files are copied. `size` is in bytes. Captures that `output` has already are not copied again; those that
    could not be copied are in the failures of the result, and in `output`/copy-failures.tsv. Raises UsageError for invalid
    arguments, InputError if a source cannot be read, StoppedError if `output` cannot be written.
    """
    failures = Failures(printed=False)
    done = copy_captures(ask(asked, text_list(asked.queries)), os.fspath(asked.output), asked, failures)
    return CopyResult(*done[:-1], failures.items)
