"""CDX files -> groups for tasks, the number of shards, and split points from a uniform sample of the lines."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence

from cdxmill.formats.archives.framing import GZIP_MAGIC
from cdxmill.inputs.cdx_files import CdxSource, Inventory, read_text
from cdxmill.messages import count
from cdxmill.running.failures import Failures
from cdxmill.running.processes import RunTasks, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.lines.pick_splits import pick_splits
from cdxmill.stages.lines.sample_lines import Sample, merge_samples
from cdxmill.tasks.whole_files import GroupSample, SampleTask, sample_texts

SHARD_SIZE = 64 << 20
"""Bytes of gzipped CDX lines per shard: about a million lines. A process merges them in seconds."""
MOST = 300
"""Shards of a monthly crawl of Common Crawl. More files make no lookup faster."""
_PLAIN = 6
"""gzip makes CDX lines about this many times smaller."""


def shards_by_size(sources: Sequence[CdxSource]) -> int:
    """One shard for each 64 MiB of gzipped CDX files, at least 1 and at most 300. A plain file counts a sixth.

    It depends on the names and sizes of the files only, so every run with the same files has the same number.

    >>> from cdxmill.storage.location import locate
    >>> shards_by_size([CdxSource(locate("a.cdx.gz"), 100 << 20, 0), CdxSource(locate("b.cdxj"), 600 << 20, 0)])
    4
    >>> shards_by_size([]), shards_by_size([CdxSource(locate("a.cdx.gz"), 1 << 50, 0)])
    (1, 300)
    """
    size = sum(
        source.size if source.path.lower().endswith(".gz") else source.size // _PLAIN for source in sources
    )
    return min(max(-(-size // SHARD_SIZE), 1), MOST)


TASKS, _MOST_TASKS = 64, 400
_LEAST, _LARGE = 8 << 20, 256 << 20


def group_sources(
    sources: Sequence[CdxSource], tasks: int = TASKS, most: int = _MOST_TASKS
) -> list[list[CdxSource]]:
    """Consecutive sources in groups of similar size; the same sizes give the same groups on any machine.

    There are about `tasks` groups, more if these had over _LARGE bytes, and never more than `most`. A file is not divided.
    """
    total = sum(source.size for source in sources)
    # two groups in a row are larger than one may be
    wanted = max(min(total // tasks, _LARGE), 2 * total // (most - 1), _LEAST)
    groups: list[list[CdxSource]] = []
    room = 0
    for source in sources:
        if not groups or room < source.size:
            groups.append([])
            room = wanted
        groups[-1].append(source)
        room -= source.size
    return groups


SAMPLES_PER_SHARD = 400
"""The largest of 300 shards then has about 1.15 times the mean number of lines; 1.25 times is rarer than one in a million."""

_SMALL = 8 << 20
"""Inputs of fewer bytes are sampled without a guess of their lines."""

_GENEROUS = 1.25
"""Lines that are looked at for each line kept, if the guess is right."""


def sample_tasks(inventory: Inventory, seed: int, size: int, ceiling: float = 1.0) -> list[SampleTask]:
    """One task per group of files; the same tasks on any machine."""
    return [
        SampleTask([source.path for source in group], str(seed), size, ceiling)
        for group in group_sources(inventory.sources)
    ]


def guess_ceiling(inventory: Inventory, size: int) -> float:
    """The priority below which the `size` lines of least priority are expected: 1 if there are few lines."""
    if inventory.size < _SMALL:
        return 1.0
    heads = inventory.heads()
    density = sum(map(_lines_per_byte, heads)) / len(heads)
    lines = density * inventory.size
    return min(1.0, _GENEROUS * size / lines) if lines else 1.0


def _lines_per_byte(head: bytes) -> float:
    """Line ends per byte at the start of a file, compressed or not; 0 if the file could not be read."""
    if not head.startswith(GZIP_MAGIC):
        return head.count(b"\n") / max(len(head), 1)
    inflater = zlib.decompressobj(31)
    try:
        text = inflater.decompress(head)
    except zlib.error:
        return 0.0
    return text.count(b"\n") / (len(head) - len(inflater.unused_data))


def splits_of(sample: Sample, shards: int, failures: Failures) -> list[bytes]:
    """Split points from a sample; prints a note if there are fewer keys than `shards`."""
    points = pick_splits((key for _, key in sample), shards)
    if len(points) + 1 < shards:
        why = "there are too few distinct keys" if sample else "no line was found"
        failures.note(f"note: {count(len(points) + 1, 'shard')}, not {shards}: {why}")
    return points


def sample_group(task: SampleTask) -> GroupSample:
    """A uniform sample, of `task.size` lines, of all lines of a group of files."""
    return sample_texts(texts_of(task.paths), task)


def texts_of(paths: Iterable[str]) -> Generator[tuple[str, Iterator[bytes | bytearray]]]:
    """Each of the files, and its text in pieces. Reading these raises InputError."""
    return ((path, read_text(path)) for path in paths)


def sample_inventory(
    inventory: Inventory,
    seed: int,
    size: int,
    processes: int,
    quiet: bool,
    failures: Failures | None,
    run: RunTasks = run_tasks,
) -> Sample:
    """A sample of `size` lines of all files, as `run_sampling` takes it."""
    ceiling = guess_ceiling(inventory, size)
    tasks = sample_tasks(inventory, seed, size, ceiling)
    sample = run_sampling(tasks, inventory.total, processes, quiet, failures, run)
    if ceiling == 1 or len(sample) == size:
        return sample
    # there are far fewer lines than guessed
    return run_sampling(sample_tasks(inventory, seed, size), inventory.total, processes, quiet, None, run)


def run_sampling(
    tasks: Sequence[SampleTask],
    size: int,
    processes: int,
    quiet: bool,
    failures: Failures | None,
    run: RunTasks = run_tasks,
) -> Sample:
    """The samples of all tasks, merged; `size` is the bytes of all files. `run` runs the tasks.

    Without `failures`, files that cannot be read are passed over: an earlier step has reported them.
    """
    wanted = tasks[0].size if tasks else 0
    merged: Sample = []
    with Progress("sampling", len(tasks), size, quiet) as progress:
        if failures is not None:
            failures.show_on(progress)
        for _, result in run(sample_group, tasks, processes, progress.tick):
            if failures is not None:
                for failure in result.failures:
                    failures.report(failure)
            merged += result.sample
            if len(merged) > 4 * wanted:
                merged = merge_samples((merged,), wanted)
            progress.advance()
    return merge_samples((merged,), wanted)
