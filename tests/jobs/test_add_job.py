"""addclusterjob.py adds what `cdxmill add --cdx` adds, and writes the same bytes; only shards that get lines are written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cdxmill.options.collections import Adding
from tests.conftest import RunCdxmill
from tests.jobs.conftest import RunJob
from tests.material.cdx_files import many_lines, write_plain

OLD, NEW = many_lines(3000), [line for line in many_lines(3000, seed=2) if line >= b"com,host020)/"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, run_cdxmill: RunCdxmill) -> Path:
    """Two clusters, of which one has no lines for the first shards of the other; and both added by cdxmill."""
    directory = tmp_path_factory.mktemp("add")
    (directory / "splits.txt").write_text("com,host010)/\ncom,host020)/\ncom,host030)/\n")
    for name, lines in (("old", OLD), ("new", NEW)):
        path = write_plain(directory / f"{name}.cdxj", lines)
        options = ["-q", "--splits", "splits.txt", "--numlines", "50", "--location", "/published", "-o", name]
        done = run_cdxmill("zipnum", *options, str(path), cwd=directory)
        assert done.returncode == 0, done.stderr
    (directory / "new/archives.tsv").write_text("a.warc.gz\ts3://crawl/a.warc.gz\n")
    shutil.copytree(directory / "old", directory / "ours")
    done = run_cdxmill("add", "-q", "ours", "--cdx", "new", cwd=directory)
    assert done.returncode == 0, done.stderr
    return directory


def shared(directory: Path) -> dict[str, bytes]:
    """The files that are the same whoever writes them."""
    patterns = ("cdx-*", "part-*", "cluster.idx", "cluster.json", "archives.tsv")
    return {path.name: path.read_bytes() for pattern in patterns for path in directory.glob(pattern)}


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_the_job_writes_what_cdxmill_add_writes(runner: str, home: Path, run_job: RunJob) -> None:
    shutil.copytree(home / "old", home / runner)
    done = run_job("addclusterjob", runner, "--zipnum-dir", runner, "new", cwd=home)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert shared(home / runner) == shared(home / "ours")
    assert {name for name in shared(home / runner) if name.endswith("-1.gz")} == {
        "cdx-00002-1.gz",
        "cdx-00003-1.gz",
    }
    before = shared(home / runner)
    again = run_job("addclusterjob", runner, "--zipnum-dir", runner, "new", cwd=home)
    assert again.returncode == 0, again.stderr
    assert shared(home / runner) == before


def test_only_clusters_can_be_added(home: Path, run_job: RunJob) -> None:
    done = run_job("addclusterjob", "inline", "--zipnum-dir", "old", "new.cdxj", cwd=home)
    assert done.returncode == 2
    assert b"new.cdxj is not a cluster with cluster.json, so only cdxmill add" in done.stderr
    done = run_job("addclusterjob", "inline", "new", cwd=home)
    assert done.returncode == 2
    assert b"--zipnum-dir is missing" in done.stderr


def test_a_corrupt_block_costs_its_own_lines(home: Path, run_job: RunJob, run_cdxmill: RunCdxmill) -> None:
    for name in ("kept", "by-cdxmill"):
        shutil.copytree(home / "old", home / name)
    shutil.copytree(home / "new", home / "corrupt")
    shard = home / "corrupt/cdx-00003.gz"
    shard.write_bytes(shard.read_bytes()[:-9] + b"x" * 9)
    done = run_job("addclusterjob", "inline", "--zipnum-dir", "kept", "corrupt", cwd=home)
    assert done.returncode == 1
    assert b"cdx-00003.gz@" in done.stderr
    assert b"; the lines of this block are missing; " in done.stderr
    assert run_cdxmill("add", "-q", "by-cdxmill", "--cdx", "corrupt", cwd=home).returncode == 1
    assert shared(home / "kept") == shared(home / "by-cdxmill")
    assert not [path for path in (home / "kept").iterdir() if path.name.startswith(".run-")]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], (False, 60, False)),
        (["--again", "-q"], (True, 60, True)),
        (["--keep-old", "0"], (False, 0, False)),
    ],
)
def test_the_options_of_the_job_are_those_of_the_command(
    words: list[str],
    asked: tuple[bool, int, bool],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from cdxmill.jobs import add_job
    from cdxmill.jobs.launcher.stream_job import launch

    given: list[Adding] = []

    def add(found: Adding, *_: object, **__: object) -> str:
        given.append(found)
        return "2 lines"

    monkeypatch.setattr(add_job, "add", add)
    monkeypatch.setattr(add_job, "advice", lambda *_: "many overlays")
    job = add_job.AddClusterJob(["--no-conf", "-r", "inline", *words, "--zipnum-dir", "c", "new", "b"])
    assert launch(job) == 0
    (found,) = given
    assert (found.again, found.keep_old, bool(found.quiet)) == asked
    assert (found.cluster, found.inputs, found.cdx) == ("c", ["new", "b"], True)
    told = capsys.readouterr().err
    assert "many overlays" in told
    assert ("c: 2 lines" in told) != ("-q" in words)
