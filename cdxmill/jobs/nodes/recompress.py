"""The task of the job that writes archives again, each to its own new archive. A node needs what the index job needs."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdxmill.capture import Note
from cdxmill.commands.per_archive.recompress_elsewhere import RecompressWork
from cdxmill.commands.per_archive.recompress_one import RecompressedArchive, RecompressTask
from cdxmill.formats.archives.zstd_dictionary import know
from cdxmill.inputs.named import Input
from cdxmill.jobs.nodes.archives import reporting
from cdxmill.jobs.nodes.task_context import TaskRun
from cdxmill.running.failures import Failure
from cdxmill.storage.location import Location

WORK_FILE = "cdxmill_recompress.pickle"
"""Name of the file with the `RecompressWork`, in the working directory of a task."""


def item_of(number: int, task: RecompressTask) -> dict[str, Any]:
    """A task as one item of the job's work list. What all tasks have in common is not in it."""
    return {
        "number": number,
        "archive": task.archive.to_fields(),
        "directory": None if task.directory is None else str(task.directory),
        "filename": task.filename,
        "places": [
            None if place is None else place.text
            for place in (task.output, task.proof, task.index, task.table)
        ],
    }


def _task_of(item: dict[str, Any], work: RecompressWork, scratch: Path) -> RecompressTask:
    output, proof = map(Location, item["places"][:2])
    index, table = (None if place is None else Location(place) for place in item["places"][2:])
    return RecompressTask(
        archive=Input.of_fields(item["archive"]),
        output=output,
        directory=None if item["directory"] is None else Path(item["directory"]),
        scratch=scratch,
        settings=work.options.settings(),
        options=work.options,
        filename=item["filename"],
        proof=proof,
        index=index,
        table=table,
    )


def read_work() -> RecompressWork:
    """What all tasks have in common, from the file that was sent with the job."""
    work: RecompressWork = pickle.loads(Path(WORK_FILE).read_bytes())
    return work


def recompress_archives(work: RecompressWork, run: TaskRun) -> None:
    """Map: write the archives on the work list again. Write a line for each: its number, a TAB, the result as JSON."""
    if work.options.dictionary:
        know(work.options.dictionary)
    with reporting(run) as directory:
        for item in run.work():
            scratch = directory / str(item["number"])
            result = work.do(_task_of(item, work, scratch), scratch)
            run.check_reached(result.failures)
            run.output.write(b"%d\t%b\n" % (item["number"], json.dumps(result).encode()))
            run.add(
                archives=1,
                records=result.records,
                archive_bytes=result.before,
                new_bytes=result.after,
                failures=len(result.failures),
                failed_archives=bool(result.failures),
            )


def parse_results(output: bytes) -> Iterator[tuple[int, RecompressedArchive]]:
    """The number and the result of each archive, from the output of all tasks."""
    for line in output.splitlines():
        number, _, text = line.partition(b"\t")
        result = RecompressedArchive(*json.loads(text))
        yield (
            int(number),
            result._replace(
                failures=[Failure(*one) for one in result.failures],
                notes=[Note(*one) for one in result.notes],
                old_notes=[Note(*one) for one in result.old_notes],
            ),
        )
