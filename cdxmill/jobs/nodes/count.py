"""The tasks of a counting job on a Hadoop node: count archives, add counts.

The node needs the libraries that cdxmill depends on (see bootstrap.sh). It needs no mrjob.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from cdxmill.commands.counting.count_group import CountTask, count_group
from cdxmill.inputs.named import Input
from cdxmill.jobs.nodes.index import format_failure, status_reports
from cdxmill.jobs.nodes.lines import lines_of
from cdxmill.jobs.nodes.output import Destination
from cdxmill.stages.counting.counters import COUNTERS, Counter, counter_of
from cdxmill.stages.counting.sum_lines import sum_counts, sum_lines
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.lines.merge_runs import merge_runs
from cdxmill.stages.lines.sorted_runs import Run
from cdxmill.storage.scratch import Scratch

JOB_FILE = "cdxmill_count_job.py"
"""Name of the file with a user's job, in the working directory of a task."""
FAILURES = "_failures-"
"""Start of the name of a file with failures; Hadoop ignores names that begin with an underscore."""


class CountWork(NamedTuple):
    """One item of the job's work list: an archive."""

    archive: Input

    def to_json(self) -> str:
        """One line of the work list, without line end."""
        return json.dumps(self.archive.to_fields())

    @classmethod
    def from_json(cls, line: bytes) -> CountWork:
        """Parse what `to_json` has written."""
        return cls(Input.of_fields(json.loads(line)))


def texts_of(runs: Sequence[Run], scratch: Scratch) -> Iterator[bytes]:
    """The lines of the sums of some runs."""
    return map(text_of, sum_lines(merge_runs(runs, scratch.create, scratch.reader)))


def sum_texts(lists: Iterable[list[bytes]]) -> Iterator[bytes]:
    """The lines of the sums of some sorted counts."""
    return map(text_of, sum_counts(lists))


def run_count(arguments: list[str]) -> None:
    """Map: write the counts of the archives that standard input lists. A failure is a line that starts with a TAB."""
    parser = argparse.ArgumentParser(prog="hadoop_task.py count")
    parser.add_argument("--what")
    parser.add_argument("--job")
    parser.add_argument("--scratch")
    options = parser.parse_args(arguments)
    counter = COUNTERS[options.what] if options.what else _counter_in_job(options.job)
    out = sys.stdout.buffer
    with (
        tempfile.TemporaryDirectory(prefix="cdxmill-", dir=options.scratch or ".") as folder,
        status_reports(),
    ):
        archives = [CountWork.from_json(line).archive for line in sys.stdin.buffer]
        scratch = Scratch(Path(folder))
        result = count_group(CountTask(archives, counter, scratch.folder / "0"))
        for failure in result.failures:
            out.write(b"\t" + format_failure(failure))
        for text in texts_of(result.runs, scratch):
            out.write(text)
        out.flush()
    counts = {
        "archives": len(archives),
        "records counted": result.counted.counted,
        "failures": len(result.failures),
    }
    for name, number in counts.items():
        sys.stderr.write(f"reporter:counter:cdxmill,{name},{number}\n")


def _counter_in_job(name: str) -> Counter:
    """The counter of the class `name` in a user's file. Its base class is not needed here, so mrjob is not, either."""
    stub = ModuleType("cdxmill.jobs.count_job")
    stub.CountJob = object  # type: ignore[attr-defined]
    sys.modules[stub.__name__] = stub
    spec = importlib.util.spec_from_file_location("cdxmill_count_job", JOB_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return counter_of(getattr(module, name)().items)


def run_sum() -> None:
    """Reduce: write the sums of the sorted counts on standard input, and the failures to a file beside them."""
    failures = Path(f"{FAILURES}{int(os.environ['mapreduce_task_partition']):05d}")  # noqa: SIM112
    with status_reports():
        for text in sum_texts(_without_failures(lines_of(sys.stdin.buffer), failures)):
            sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    if failures.exists():
        output = os.environ["mapreduce_output_fileoutputformat_outputdir"]  # noqa: SIM112 - Hadoop's spelling
        Destination(output).put([failures.name])


def _without_failures(lists: Iterable[list[bytes]], path: Path) -> Iterator[list[bytes]]:
    """Lists without the lines of failures, which come first, because their keys are empty."""
    for lines in lists:
        found = [line[1:] + b"\n" for line in lines if line.startswith(b"\t")]
        if found:
            with path.open("ab") as file:
                file.writelines(found)
            lines = [line for line in lines if not line.startswith(b"\t")]
        yield lines
