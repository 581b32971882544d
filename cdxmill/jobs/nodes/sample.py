"""The tasks of the sample job: mappers sample CDX files, one reducer picks the split points.

They run with Python 3.9 or later and the archive of jobs/launcher/node_archive.py. This module must not
import anything that has to be installed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing

from cdxmill.jobs.nodes.task_context import Read, TaskRun, format_failure, parse_failure
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.pick_splits import pick_splits
from cdxmill.stages.lines.sample_lines import Sample, merge_samples
from cdxmill.tasks.whole_files import SampleTask, sample_texts

_LEAST_SENT = 1000
"""A mapper sends at least this many samples."""
_SHARE_FACTOR = 4
"""A mapper sends this many times its share of the samples that are kept."""
_FAILURE = b"failure"
"""In the place of a priority: the key is a failure."""
_MARK = b"!"
"""Before a failure among the split points; base64 does not have it."""


def share_of_sample(size: int, mappers: int, part: float = 0.0) -> int:
    """The samples that one of `mappers` sends, if the reducer keeps `size`: of many, several times the share is enough.

    `part` is that of its bytes among all. The sample is that of one machine, unless a mapper has far more lines than that.
    """
    return min(size, max(_LEAST_SENT, _SHARE_FACTOR * size // mappers, int(_SHARE_FACTOR * size * part)))


def sample_files(size: int, read: Read, run: TaskRun) -> None:
    """Map: write a uniform sample of the lines of the files in each `SampleTask` on the work list.

    `size` is that of the whole sample, of which the reducer keeps as many.
    """
    sample: Sample = []
    bound = None
    for item in run.work():
        task = SampleTask(**item)
        with closing(read(task.paths)) as texts:
            result = sample_texts(texts, task)
        for failure in result.failures:
            run.output.write(b"\t%b\t%b\n" % (_FAILURE, base64.b64encode(format_failure(failure))))
        if len(result.sample) == task.size < size:
            bound = min(bound or 1.0, max(result.sample)[0])
        sample = merge_samples((sample, result.sample), size)
    run.output.write(_format_sample(sample, bound))


def pick_points(size: int, shards: int, run: TaskRun) -> None:
    """Reduce: write the split points, from the samples of all mappers; `size` is that of the whole sample."""
    failures: list[bytes] = []
    sample = _read_sample(run.lines(), size, failures)
    run.output.writelines(_MARK + failure + b"\n" for failure in failures)
    points = pick_splits((key for _, key in sample), shards)
    run.output.writelines(base64.b64encode(point) + b"\n" for point in points)
    run.add(samples=len(sample))


def parse_points(output: bytes) -> list[bytes]:
    """The split points that `pick_points` has written."""
    return [base64.b64decode(line) for line in output.split() if not line.startswith(_MARK)]


def parse_failures(output: bytes) -> list[Failure]:
    """The failures between them."""
    rows = (line for line in output.split() if line.startswith(_MARK))
    return sorted(parse_failure(base64.b64decode(row[len(_MARK) :])) for row in rows)


def _format_sample(sample: Sample, bound: float | None) -> bytes:
    """Lines `TAB <priority> TAB <key in base64>`. The text before the first tab is empty, so all go to one reducer.

    Base64, because a key may contain a tab, or a CR that Hadoop streaming takes for a line end.
    A line without a key says that no line with a priority above `bound` was sent.
    """
    rows = [*sample, (bound, b"")] if bound is not None else sample
    return b"".join(b"\t%r\t%b\n" % (priority, base64.b64encode(key)) for priority, key in rows)


def _read_sample(lists: Iterator[list[bytes]], size: int, failures: list[bytes]) -> Sample:
    """The `size` samples of least priority, from lines of `_format_sample`. Failures are added to the list, in base64.

    Returns fewer if a mapper has sent too few: samples above the lowest bound are dropped, so
    that every line of every mapper keeps the same chance.
    """
    sample: Sample = []
    bound = 1.0
    for lines in lists:
        rows = [line.split(b"\t") for line in lines]
        failures += [row[2] for row in rows if row[1] == _FAILURE]
        pairs = [(float(row[1]), base64.b64decode(row[2])) for row in rows if row[1] != _FAILURE]
        bound = min([bound, *(priority for priority, key in pairs if not key)])
        sample += [pair for pair in pairs if pair[1]]
        if len(sample) >= 2 * size:
            sample = merge_samples((sample,), size)
    return [pair for pair in merge_samples((sample,), size) if pair[0] <= bound]
