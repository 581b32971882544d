"""Tasks as a Hadoop node runs them, with every Python of this machine and nothing installed."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from cdxmill.formats.clusters.compressor import BLOCKS
from cdxmill.jobs.nodes.run_task import SPLITS
from cdxmill.jobs.nodes.sample import parse_failures, parse_points
from cdxmill.jobs.nodes.sent_call import item_of, parse_results
from cdxmill.jobs.nodes.zipnum import ReducerReport
from cdxmill.running.failures import Failure
from cdxmill.stages.lines.line_chunks import format_record
from tests.conftest import RunCdxmill
from tests.jobs.conftest import (
    CHUNKS,
    HardInputs,
    chunks_in,
    packed_nodes,
    page_line,
    run_task,
    shuffled,
    task_done,
    work_list,
)
from tests.reliability.cases_hadoop import CASES
from tests.reliability.table import Row, read_table

PACKER = ("--compressor", "zlib-ng", "--level", "5", "--section-lines", str(BLOCKS.section_lines))


@cache
def pythons() -> list[Path]:
    """This Python, and others on the PATH or in pyenv, each once. What pyenv has on the PATH starts one of its own."""
    found = {Path(sys.executable).resolve()}
    for minor in range(9, 15):
        path = shutil.which(f"python3.{minor}")
        if (
            path is not None
            and Path(path).parent.name != "shims"
            and not subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode
        ):
            found.add(Path(path).resolve())
    for home in Path("~/.pyenv/versions").expanduser().glob("3.*"):
        if int(home.name.split(".")[1]) >= 9:
            found.add((home / "bin/python").resolve())
    return sorted(found)


def write_shard(
    directory: Path,
    lines: list[bytes],
    *options: str,
    numlines: int = 3000,
    python: Path = Path(sys.executable),
) -> bytes:
    """Two mappers with half of the lines each and `options`, the shuffle, and the reducer of the second of two shards.

    Returns what the reducer reports to Hadoop.
    """
    (directory.parent / "cdxmill_splits.txt").write_bytes(b"\0\n")
    sent = [
        run_task(
            "chunks",
            *PACKER[:2],
            *options,
            data=work_list(directory.parent, half),
            cwd=directory.parent,
            python=python,
        )
        for half in (lines[::2], lines[1::2])
    ]
    cluster = ("--cluster", directory.as_uri(), "--numlines", str(numlines))
    data = shuffled(sent, b"")
    done = task_done("shard", *cluster, *PACKER, data=data, partition=1, cwd=directory.parent, python=python)
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr


@pytest.mark.parametrize("python", pythons(), ids=lambda path: path.parents[1].name)
def test_a_shard_is_the_same_from_every_python(
    tmp_path: Path, python: Path, hard_inputs: HardInputs, run_cdxmill: RunCdxmill
) -> None:
    lines = sorted(random.Random(3).sample(sorted(hard_inputs.lines), 500))
    directory, given = tmp_path / "shared", tmp_path / "all.cdxj"
    directory.mkdir()
    given_lines = [*lines, b" CDX N b", lines[-1], b" CDX N b"]
    random.Random(4).shuffle(given_lines)
    reported = write_shard(directory, given_lines, python=python)
    given.write_bytes(b"".join(line + b"\n" for line in lines))
    assert run_cdxmill("zipnum", "-q", "-s", "1", "-o", tmp_path / "ours", given).returncode == 0
    assert (directory / "cdx-00001.gz").read_bytes() == (tmp_path / "ours/cdx-00000.gz").read_bytes()
    part = (tmp_path / "ours/part-00000").read_bytes().replace(b"cdx-00000.gz", b"cdx-00001.gz")
    assert (directory / "part-00001").read_bytes() == part
    report = ReducerReport.from_json((directory / "_report-00001").read_bytes())
    assert report.shard.lines == 500
    counts = {"lines": 500, "duplicates": 1, "blocks": 1, "bytes": report.shard.bytes}
    for name, number in counts.items():
        assert b"reporter:counter:cdxmill,%b,%d\n" % (name.encode(), number) in reported
    assert (report.compressor_version, report.duplicate_lines) == (BLOCKS.version(), 1)
    assert sorted(path.name for path in directory.iterdir()) == [
        "_report-00001",
        "cdx-00001.gz",
        "part-00001",
    ]


def test_lines_that_are_converted_are_sorted_as_what_they_become(tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    lines = [
        b"a)/ 1 http://a/\xc3\xa4 1 0 f",
        b"a)/ 1 http://a/z 10 0 f",
        b"a)/ 1 http://a/z 9 0 f",
        b"b)/ 1 u 1 0 f",
    ]
    write_shard(directory, lines, "--convert", numlines=2)
    found = gzip.decompress((directory / "cdx-00001.gz").read_bytes()).splitlines()
    assert found == sorted(found)
    assert len(found) == 4
    assert b'"length": "10"' in found[1] + found[2]


def test_a_file_that_cannot_be_converted_is_reported_and_the_others_are_used(tmp_path: Path) -> None:
    """As in `zipnum --convert`. The reducers converted, and the first such line ended the job."""
    (tmp_path / SPLITS).write_bytes(b"")
    work = work_list(tmp_path, [b"a)/ 1 u 1 0 f"], [b"b)/ 1 u - 200 X - - 12 0 f"])
    sent = run_task("chunks", *PACKER[:2], "--convert", data=work, cwd=tmp_path)
    failures: list[Failure] = []
    (chunk,) = chunks_in(sent, failures)
    assert chunk == b'a)/ 1 {"url": "u", "length": "1", "offset": "0", "filename": "f"}'
    assert [failure.path for failure in failures] == json.loads(work)["paths"][1:]
    assert "invalid line with 11 fields, expected 6" in str(failures[0])


def test_missing_libraries_of_the_index_job_are_reported_with_what_to_do() -> None:
    """Like a node where bootstrap.sh was run for an earlier version."""
    script = packed_nodes() / "hadoop_task.py"
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(script), "index"],
        capture_output=True,
        text=True,
        check=False,
        input="",
    )
    assert done.returncode == 42
    assert done.stderr.startswith(
        f"cdxmill: the Python of this node, {sys.executable}, lacks a library (No module"
    )
    assert "bootstrap.sh" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_old_python_is_reported_with_what_to_do(tmp_path: Path) -> None:
    old = [home / "bin/python" for home in Path("~/.pyenv/versions").expanduser().glob("3.8*")]
    script = packed_nodes() / "hadoop_task.py"
    code = f"import sys; sys.version_info = (3, 6, 8); sys.argv = ['x', 'shard']; exec(open({str(script)!r}).read())"
    for command in [[sys.executable, "-c", code], *([str(python), str(script), "shard"] for python in old)]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 41
        assert done.stderr.startswith("cdxmill: this node has Python 3.")
        assert "--python-bin" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_machine_without_a_matching_wheel_is_reported(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    shutil.copytree(packed_nodes(), nodes, ignore=shutil.ignore_patterns("wheels"))
    command = [
        sys.executable,
        "-I",
        "-S",
        str(nodes / "hadoop_task.py"),
        "shard",
        "--cluster",
        tmp_path.as_uri(),
        *PACKER,
    ]
    done = subprocess.run(
        command, input=b"", env={"mapreduce_task_partition": "0"}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert done.stderr.startswith(b"cdxmill: the compressor zlib-ng is not installed")


ROWS = {
    slug: row
    for slug, row in read_table(Path(__file__).resolve().parents[2] / "docs/reliability.md").items()
    if slug.startswith("hadoop-")
}


def test_every_row_of_the_reliability_page_has_a_case() -> None:
    assert sorted(ROWS) == sorted(CASES)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_corrupt_file_is_reported_and_the_others_are_used(row: Row, tmp_path: Path) -> None:
    content = CASES[row.slug]
    (tmp_path / SPLITS).write_bytes(b"")
    files = [b"c 2020 {}"], content, gzip.compress(b"d 2020 {}\n") + gzip.compress(b"e 2020 {}")
    work = work_list(tmp_path, *files, seed="0:0", size=10)
    path = json.loads(work)["paths"][1]
    sent = run_task("chunks", "--compressor", "libdeflate", data=work, cwd=tmp_path)
    failures: list[Failure] = []
    assert chunks_in(sent, failures) == [b"c 2020 {}\nd 2020 {}\ne 2020 {}"]
    (failure,) = map(str, failures)
    assert row.messages[0].fullmatch(failure), failure
    assert failure.startswith(f"{path}: ")
    sample = run_task("sample", "--size", "10", data=work, cwd=tmp_path)
    points = run_task("points", "--size", "10", "--shards", "3", data=sample, cwd=tmp_path)
    assert parse_points(points) == [b"d 2020", b"e 2020"]
    (sampled,) = parse_failures(points)
    assert str(sampled) == failure.replace("none of its lines are in the cluster: ", "")


def test_a_file_that_is_corrupt_at_its_end_leaves_none_of_its_lines(tmp_path: Path) -> None:
    """It is larger than what a mapper holds, so most of its chunks are made before."""
    (tmp_path / SPLITS).write_bytes(b"")
    good = [page_line(number) for number in range(300_000)]
    large = gzip.compress(b"\n".join(good), 1)
    work = work_list(tmp_path, good[:9], large[:-4], large)
    for python in {pythons()[0], Path(sys.executable)}:
        sent = run_task("chunks", "--compressor", "libdeflate", data=work, cwd=tmp_path, python=python)
        failures: list[Failure] = []
        chunks = chunks_in(sent, failures)
        assert sum(text.count(b"\n") + 1 for text in chunks) == 300_009
        assert len(failures) == 1


def test_a_truncated_shuffle_gives_no_shard(tmp_path: Path) -> None:
    script = packed_nodes() / "hadoop_task.py"
    command = [sys.executable, "-I", "-S", str(script), "shard", "--cluster", tmp_path.as_uri(), *PACKER]
    sent = format_record(b"a 2020 {}", b"a 2020 {}\nb 2020 {}", CHUNKS.compress)
    for cut in (len(sent) - 1, len(sent) - 20, 3):
        done = subprocess.run(
            command,
            input=sent + sent[:cut],
            cwd=tmp_path,
            env={"mapreduce_task_partition": "0"},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (1, b"cdxmill: the output of the mappers is truncated\n")
        assert not (tmp_path / "_report-00000").exists()


def test_more_mappers_make_smaller_chunks(tmp_path: Path) -> None:
    """A reducer holds some chunks of each mapper, so its memory depends on their number."""
    (tmp_path / "cdxmill_splits.txt").write_bytes(b"")
    lines = [b"%06d 2020 {}" % number for number in range(50_000)]
    data = work_list(tmp_path, lines)
    counts = []
    for mappers in (1, 1_000, 100_000):
        sent = run_task("chunks", *PACKER[:2], data=data, mappers=mappers, cwd=tmp_path)
        chunks = chunks_in(sent, [])
        assert b"\n".join(chunks).split(b"\n") == lines
        counts.append(len(chunks))
    assert counts[0] < counts[1] / 3 < counts[2] / 9


def test_calls_that_are_sent_have_their_results(tmp_path: Path) -> None:
    items = [item_of(number, len, "x" * number) for number in (4, 2)]
    data = b"".join(json.dumps(item).encode() + b"\n" for item in items)
    assert list(parse_results(run_task("call", data=data, cwd=tmp_path))) == [(4, 4), (2, 2)]
