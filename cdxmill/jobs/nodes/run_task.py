"""Run a task on a Hadoop node: its name is the first argument, its options follow."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.formats.clusters.split_points import parse_text
from cdxmill.formats.clusters.zipnum import BLOCK_LINES
from cdxmill.jobs.nodes import sample, zipnum
from cdxmill.jobs.nodes.files import read_inputs
from cdxmill.jobs.nodes.task_context import TaskRun
from cdxmill.stages.lines.line_chunks import format_record, read_records

SPLITS = "cdxmill_splits.txt"
"""Name of the file with the split points, in the working directory of a task."""


def run_task(arguments: list[str]) -> None:
    """Run the task. Raises ImportError if this Python lacks a library that the index job or a counting job needs."""
    given = _parser().parse_args(arguments)
    directory = Path(given.scratch or ".")
    run = TaskRun(sys.stdin.buffer, sys.stdout.buffer, sys.stderr.buffer, directory)
    if given.task in ("index", "recompress", "count", "sum", "call"):
        _run_with_libraries(given, run)
    elif given.task == "sample":
        sample.sample_files(given.size, read_inputs, run)
    elif given.task == "points":
        sample.pick_points(given.size, given.shards, run)
    elif given.task == "chunks":
        points = parse_text(Path(SPLITS).read_bytes())
        form = partial(format_record, pack=zipnum.chunk_packer(given.compressor))
        zipnum.send_chunks(read_inputs, points, form, run, given.convert)
    else:
        compressor = Compressor(given.compressor, given.level, given.section_lines)
        options = zipnum.ShardTaskOptions(given.cluster, given.numlines, compressor)
        zipnum.write_one_shard(options, run.number, read_records(run.input), run)
    run.output.flush()


def _run_with_libraries(given: argparse.Namespace, run: TaskRun) -> None:
    """Run a task that needs libraries which the archive of the job does not contain."""
    from cdxmill.inputs.dictionaries import use_sent_dictionary

    use_sent_dictionary()
    if given.task == "index":
        from cdxmill.jobs.nodes.archives import index_archives

        index_archives(run)
        return
    if given.task == "call":
        from cdxmill.jobs.nodes.sent_call import do_calls

        do_calls(run)
        return
    if given.task == "recompress":
        from cdxmill.jobs.nodes.recompress import read_work, recompress_archives

        recompress_archives(read_work(), run)
        return
    from cdxmill.jobs.nodes.archives import add_counts, count_archives, counter_in_job
    from cdxmill.running.watched import Limits
    from cdxmill.stages.counting.counters import COUNTERS

    if given.task == "count":
        counter = COUNTERS[given.what] if given.what else counter_in_job(given.job)
        count_archives(counter, run, Limits(given.timeout, given.memory << 20))
    else:
        add_counts(os.environ["mapreduce_output_fileoutputformat_outputdir"], run)  # noqa: SIM112 - Hadoop's spelling


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hadoop_task.py")
    parser.set_defaults(scratch=None)
    tasks = parser.add_subparsers(dest="task", required=True)
    for name in ("index", "recompress"):
        tasks.add_parser(name).add_argument("--scratch")
    count = tasks.add_parser("count")
    for name in ("--what", "--job", "--scratch"):
        count.add_argument(name)
    count.add_argument("--timeout", type=int, default=60)
    count.add_argument("--memory", type=int, default=2048)
    for name in ("sum", "call"):
        tasks.add_parser(name)
    tasks.add_parser("sample").add_argument("--size", type=int, required=True)
    points = tasks.add_parser("points")
    points.add_argument("--size", type=int, required=True)
    points.add_argument("--shards", type=int, default=1)
    chunks = tasks.add_parser("chunks")
    chunks.add_argument("--compressor", required=True)
    chunks.add_argument("--convert", action="store_true")
    shard = tasks.add_parser("shard")
    shard.add_argument("--cluster", required=True)
    shard.add_argument("--numlines", type=int, default=BLOCK_LINES)
    shard.add_argument("--compressor", required=True)
    shard.add_argument("--level", type=int, required=True)
    shard.add_argument("--section-lines", type=int, required=True)
    return parser
