"""CDX files -> sorted runs on scratch space, and a sample of their lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cdxmill.errors import InputError
from cdxmill.formats.convert import convert_line
from cdxmill.inputs.cdx_files import AGAIN, read_pieces, read_sorted
from cdxmill.stages.lines.line_lists import LineCutter, is_capture_line
from cdxmill.stages.lines.merge_runs import MOST_RUNS, fewer_runs
from cdxmill.stages.lines.sample_lines import Reservoir, add_pieces
from cdxmill.stages.lines.sort_lines import LineSorter
from cdxmill.stages.lines.sorted_file import SeekPoints
from cdxmill.stages.lines.sorted_runs import Run
from cdxmill.storage.choose import local_path
from cdxmill.storage.scratch import Scratch


def share_of_runs(tasks: int) -> int:
    """How many runs each of so many `tasks` may leave, so that all can be merged at once."""
    return max(1, MOST_RUNS // max(tasks, 1))


def finish_runs(sorter: LineSorter, scratch: Scratch, most: int) -> list[Run]:
    """The runs of `sorter`, `most` of them at the most: some are merged then, MOST_RUNS at a time, and deleted."""
    runs = sorter.finish()
    while len(runs) > most:
        few = fewer_runs(runs, scratch.create, scratch.reader, max(most, len(runs) - MOST_RUNS + 1))
        scratch.delete({run.name for run in runs} - {run.name for run in few})
        runs = few
    return runs


def sort_files(
    paths: Sequence[str], sorter: LineSorter, reservoir: Reservoir, convert: bool, shards: int = 0
) -> list[tuple[str, str, str]]:
    """Read CDX files into `sorter` and past `reservoir`; path, reason and hint of those that are no good.

    A damaged file leaves no line in either. Where the number of `shards` is told, files that are
    sorted are not spilled if that is cheaper: they are to stay as they are until the runs are merged.
    """
    failures = []
    for path in paths:
        sorter.begin()
        reservoir.begin()
        try:
            if not (shards and not convert and _adopt(path, sorter, reservoir, shards)):
                add_pieces(_read(path, sorter, convert), reservoir)
        except (InputError, ValueError) as error:
            sorter.undo()
            reservoir.undo()
            reason = error.reason if isinstance(error, InputError) else str(error)
            todo = (error.hint if isinstance(error, InputError) else "") or AGAIN
            failures.append((path, reason, f"none of its lines are in the cluster: {todo}"))
    return failures


def _adopt(path: str, sorter: LineSorter, reservoir: Reservoir, shards: int) -> bool:
    """Whether the file is sorted and a run now. Its lines have passed `reservoir` then."""
    places: SeekPoints | None = None

    def pieces() -> Iterator[bytes]:
        nonlocal places
        places = yield from read_sorted(path, shards)

    add_pieces(pieces(), reservoir)
    if places is None:
        reservoir.undo()
        return False
    sorter.adopt(str(Path(local_path(path)).absolute()), places)
    return True


def _read(path: str, sorter: LineSorter, convert: bool) -> Iterator[bytes]:
    """The text of a file in pieces, while `sorter` takes its lines."""
    cutter = LineCutter()
    for piece in read_pieces(path):
        sorter.add(_converted(cutter.cut(piece), convert))
        yield piece
    sorter.add(_converted(cutter.end(), convert))


def _converted(lines: list[bytes], convert: bool) -> list[bytes]:
    return [convert_line(line) for line in lines if is_capture_line(line)] if convert else lines
