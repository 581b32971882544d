"""The tasks of a counting job: count archives, add counts.

A Hadoop node needs the libraries that cdxmill depends on (see bootstrap.sh). It needs no mrjob.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from cdxmill.commands.count import CountTask, count_group
from cdxmill.inputs.named import Input
from cdxmill.jobs.nodes.files import Destination
from cdxmill.jobs.nodes.index import status_reports
from cdxmill.jobs.nodes.task_context import TaskRun, format_failure
from cdxmill.stages.counting.counters import Counter, counter_of
from cdxmill.stages.counting.tally import sum_counts, sum_lines
from cdxmill.stages.lines.line_lists import text_of
from cdxmill.stages.lines.merge_lines import merge_runs
from cdxmill.storage.scratch import Scratch

JOB_FILE = "cdxmill_count_job.py"
"""Name of the file with a user's job, in the working directory of a task."""
FAILURES = "_failures-"
"""Start of the name of a file with failures; Hadoop ignores names that begin with an underscore."""


def count_archives(counter: Counter, run: TaskRun) -> None:
    """Map: write the counts of the archives on the work list. A failure is a line that starts with a TAB."""
    with tempfile.TemporaryDirectory(prefix="cdxmill-", dir=run.directory) as directory, status_reports(run):
        archives = [Input.of_fields(item["archive"]) for item in run.work()]
        scratch = Scratch(Path(directory))
        result = count_group(CountTask(archives, counter, scratch.directory / "0"))
        run.output.writelines(b"\t" + format_failure(failure) for failure in result.failures)
        run.output.writelines(
            map(text_of, sum_lines(merge_runs(result.runs, scratch.create, scratch.reader)))
        )
        run.output.flush()
    run.add(archives=len(archives), records_counted=result.counted.counted, failures=len(result.failures))


def counter_in_job(name: str) -> Counter:
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


def add_counts(output: str, run: TaskRun) -> None:
    """Reduce: write the sums of the sorted counts, and the failures to a file in the job's output directory, a URL."""
    failures = Path(f"{FAILURES}{run.number:05d}")
    with status_reports(run):
        run.output.writelines(map(text_of, sum_counts(_without_failures(run.lines(), failures))))
        run.output.flush()
    if failures.exists():
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
