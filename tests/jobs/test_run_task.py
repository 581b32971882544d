"""jobs/nodes/run_task.py: each task gets its options, and defaults where none are given."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.inputs import dictionaries
from cdxmill.jobs.nodes import archives, recompress, run_task, sample, sent_call, zipnum
from cdxmill.jobs.nodes.files import read_inputs
from cdxmill.stages.counting.counters import COUNTERS


class Streams:
    """The streams of a task."""

    def __init__(self) -> None:
        self.buffer = io.BytesIO()


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The tasks that were called, with what they were given besides the run."""
    found: list[tuple[Any, ...]] = []

    def noted(name: str) -> Callable[..., None]:
        return lambda *given: found.append((name, *[one for one in given if not hasattr(one, "reports")]))

    for module, names in (
        (sample, ("sample_files", "pick_points")),
        (zipnum, ("send_chunks", "write_one_shard")),
        (archives, ("index_archives", "count_archives", "add_counts")),
        (recompress, ("recompress_archives",)),
        (sent_call, ("do_calls",)),
        (dictionaries, ("use_sent_dictionary",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, noted(name))
    monkeypatch.setattr(recompress, "read_work", lambda: "work")
    monkeypatch.setattr(archives, "counter_in_job", lambda job: f"counter of {job}")
    monkeypatch.setattr(zipnum, "chunk_packer", lambda name: f"packer of {name}")
    monkeypatch.setattr(run_task, "read_records", lambda _: "records")
    monkeypatch.setattr(run_task, "sys", SimpleNamespace(stdin=Streams(), stdout=Streams(), stderr=Streams()))
    monkeypatch.setenv("mapreduce_task_partition", "3")
    monkeypatch.setenv("mapreduce_output_fileoutputformat_outputdir", "hdfs:///out")
    monkeypatch.chdir(tmp_path)
    (tmp_path / run_task.SPLITS).write_bytes(b"b 2020\n")
    return found


@pytest.mark.parametrize(
    ("words", "name", "given"),
    [
        ("index", "index_archives", ()),
        ("recompress", "recompress_archives", ("work",)),
        ("call", "do_calls", ()),
        ("sum", "add_counts", ("hdfs:///out",)),
        ("count --what tags", "count_archives", (COUNTERS["tags"], (60, 2048 << 20))),
        ("count --job j --timeout 7 --memory 1", "count_archives", ("counter of j", (7, 1 << 20))),
    ],
)
def test_tasks_that_need_libraries_read_with_the_dictionary(
    words: str, name: str, given: tuple[Any, ...], done: list[tuple[Any, ...]]
) -> None:
    run_task.run_task(words.split())
    first, called = done
    assert first == ("use_sent_dictionary",)
    assert called == (name, *given)


def test_tasks_that_sample_and_sort_need_no_library(done: list[tuple[Any, ...]]) -> None:
    for words in (
        "sample --size 5",
        "points --size 6",
        "points --size 6 --shards 4",
        "chunks --compressor zlib",
        "chunks --compressor zlib --convert",
        "shard --cluster c --compressor zlib --level 3 --section-lines 9",
        "shard --cluster c --compressor zlib --level 3 --section-lines 9 --numlines 8",
    ):
        run_task.run_task(words.split())
    size, one, four, chunks, converted, usual, short = done
    assert size == ("sample_files", 5, read_inputs)
    assert (one, four) == (("pick_points", 6, 1), ("pick_points", 6, 4))
    for found, convert in (chunks, False), (converted, True):
        assert found[:3] == ("send_chunks", read_inputs, [b"b 2020"])
        assert found[3].keywords == {"pack": "packer of zlib"}
        assert found[4:] == (convert,)
    for found, lines in (usual, 3000), (short, 8):
        options = zipnum.ShardTaskOptions("c", lines, Compressor("zlib", 3, 9))
        assert found == ("write_one_shard", options, 3, "records")


@pytest.mark.parametrize("scratch", ["", "/mnt/tmp"])
def test_temporary_files_are_in_the_directory_that_was_given(
    scratch: str, done: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Path] = []
    monkeypatch.setattr(archives, "index_archives", lambda run: found.append(run.directory))
    run_task.run_task(["index", *(["--scratch", scratch] if scratch else [])])
    assert found == [Path(scratch or ".")]


@pytest.mark.parametrize(
    "words", ["", "other", "sample", "points", "chunks", "shard --cluster c --compressor zlib --level 3"]
)
def test_a_task_has_a_name_and_its_options(
    words: str, capsys: pytest.CaptureFixture[str], done: list[tuple[Any, ...]]
) -> None:
    with pytest.raises(SystemExit):
        run_task.run_task(words.split())
    assert "usage: hadoop_task.py" in capsys.readouterr().err
    assert done == []


@pytest.mark.parametrize("is_there", [True, False])
def test_chunks_are_gzip_data_with_isal_and_without(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_there:
        monkeypatch.setitem(sys.modules, "isal", None)
    assert gzip.decompress(zipnum.chunk_packer("zlib")(b"lines")) == b"lines"
