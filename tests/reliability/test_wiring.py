"""Each command that writes goes through the same table: its output is an input, is held, is there, or has an odd name.

`test_planted_names.py` has links and directories under every name that a command writes, `test_crash_points.py` kills and full disks.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdxmill.cli.main import COMMANDS
from cdxmill.messages import Step
from cdxmill.running.lock import hold
from cdxmill.running.progress import listened_to

from .writers import CALLS, READ_ONLY, files_in, run

START = {"0.warc.gz", "bad.warc.gz", "1.warc.gz", "0.cdxj", "c"}
"""The inputs of the calls."""
ARCHIVES = {"0.warc.gz", "bad.warc.gz", "1.warc.gz"}
MANY_ARCHIVES = {"index", "recompress", "scan", "count", "build", "train-dictionary"}
"""The commands that take any number of them."""
ONE_FILE = {
    "index, one file",
    "count",
    "cat",
    "sample",
    "split-points",
    "export, lines",
    "train-dictionary",
    "prefix-index",
    "report",
    "serve",
}
"""They write one file, or a few. Each is complete when it gets its name, so they need no lock."""
ODD = "-a b'\"$&;\u00e9\u202e\udcff%41#?"
OUTPUT_OPTIONS = ("-o", "--table", "--html", "--json", "--config-only")


def outputs(call: str) -> list[str]:
    """The outputs of a call: what follows these options, or the cluster that it changes."""
    words = call.split()
    named = [words[at + 1] for at, word in enumerate(words) if word in OUTPUT_OPTIONS]
    return named or [word for word in words if word.startswith("w/")][-1:]


def input_as_output() -> list[tuple[str, str]]:
    """Each call with each of its inputs in place of its output. `publish` and `serve` write new files beside a cluster."""
    found = list[tuple[str, str]]()
    for name, call in CALLS.items():
        for given in sorted(START & set(call.split())):
            words = [given if word in outputs(call) else word for word in call.split()]
            if (words[0], given) not in (("publish", "c"), ("serve", "c")):
                found.append((name, " ".join(words)))
    return found


@pytest.fixture
def world(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(start, tmp_path / "world")
    monkeypatch.chdir(tmp_path / "world")
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return tmp_path / "world"


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Another thread holds the directory: for this one, it is another run."""
    has_it, is_done = threading.Event(), threading.Event()

    def other() -> None:
        with hold(directory):
            has_it.set()
            is_done.wait()

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert has_it.wait(60)
        yield
    finally:
        is_done.set()
        thread.join()


def test_every_command_that_writes_is_here() -> None:
    assert {call.split()[0] for call in CALLS.values()} == COMMANDS.keys() - READ_ONLY
    assert CALLS.keys() >= ONE_FILE
    assert all(outputs(call) for call in CALLS.values())


@pytest.mark.parametrize(("name", "call"), input_as_output())
def test_an_input_is_never_the_output(
    name: str, call: str, world: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = files_in(".")
    status = run(call)
    text = capfd.readouterr().err
    assert status == 2, text
    assert files_in(".") == before
    assert "internal" not in text


READ_CLUSTERS = [name for name in CALLS if name in ONE_FILE - {"serve"} and " c" in CALLS[name]]


@pytest.mark.parametrize("name", READ_CLUSTERS)
def test_no_file_of_a_cluster_that_is_read_is_the_output(
    name: str, world: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = files_in(".")
    for file in Path("c").iterdir():
        for output in outputs(CALLS[name]):
            words = [str(file) if word == output else word for word in CALLS[name].split()]
            assert run([*words, "--replace"]) == 2, words
            assert "is an input" in capfd.readouterr().err
    assert files_in(".") == before


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ONE_FILE])
def test_a_run_beside_it_is_refused(name: str, world: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (output,) = outputs(CALLS[name])
    with held(world / output):
        before = files_in(".")
        status = run(CALLS[name])
        text = capfd.readouterr().err
        assert status == 2, text
        assert files_in(".") == before
    assert any(reason in text for reason in ("another run", "already exists", "is a directory")), text


@pytest.mark.parametrize("name", ["zipnum", "build"])
def test_a_run_beside_it_is_refused_even_if_there_is_nothing_to_do(
    name: str, world: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The other run may be about to replace what is finished."""
    (output,) = outputs(CALLS[name])
    status = run(CALLS[name])
    with held(world / output):
        assert run(CALLS[name]) == 2
    assert "another run" in capfd.readouterr().err
    assert run(CALLS[name]) == status


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ONE_FILE | {"export"}])
def test_a_run_holds_its_output_while_it_writes(
    name: str, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is in the output, or in the directory beside it where the output is built. Each `export` has one of its own."""
    locks: set[Path] = set()
    monkeypatch.setattr(os, "fsync", lambda _: locks.update(world.rglob(".lock")))
    run(CALLS[name])
    assert {path.relative_to(world).parts[0] for path in locks} == {"w"}
    assert not any(path.exists() for path in locks)


@pytest.mark.parametrize("name", CALLS)
def test_a_file_in_the_place_of_the_output_stays(
    name: str, world: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for one in outputs(CALLS[name]):
        shutil.rmtree(one, ignore_errors=True)
        Path(one).write_text("precious")
    status = run(CALLS[name].replace("--replace ", ""))
    text = capfd.readouterr().err
    assert status == 2, text
    assert {Path(one).read_text() for one in outputs(CALLS[name])} == {"precious"}


@pytest.mark.parametrize("call", [*CALLS.values(), "publish http://127.0.0.1:9/c w/o"])
def test_no_output_is_at_a_web_server(call: str, world: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is not even asked: nothing listens there."""
    before = files_in(".")
    elsewhere = {} if "http:" in call else {one: f"http://127.0.0.1:9/{one}" for one in outputs(call)}
    status = run([elsewhere.get(word, word) for word in call.split()])
    text = capfd.readouterr().err
    assert status == 2, text
    assert "http://127.0.0.1:9/" in text
    assert "http:// cannot be written" in text or "not a local directory" in text
    assert files_in(".") == before


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call.split()[0] in MANY_ARCHIVES])
def test_a_manifest_without_archives_is_wrong_usage(
    name: str, world: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("empty.txt").touch()
    before = files_in(".")
    words = [word for word in CALLS[name].split() if word not in ARCHIVES]
    assert run([*words, "--manifest", "empty.txt"]) == 2
    assert "no archives found" in capfd.readouterr().err
    assert files_in(".") == before


@pytest.mark.parametrize("name", CALLS)
def test_an_output_below_a_file_is_wrong_usage(
    name: str, world: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = files_in(".")
    below = {one: f"mine/file/{Path(one).name}" for one in outputs(CALLS[name])}
    status = run([below.get(word, word) for word in CALLS[name].split()])
    text = capfd.readouterr().err
    assert status == 2, text
    assert "mine/file" in text
    assert files_in(".") == before


@pytest.mark.parametrize("name", CALLS)
def test_names_may_have_odd_characters(name: str, world: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As an input and as an output. Messages stay lines of text."""
    odd = ODD.replace("\udcff", "") if name == "serve" else ODD
    words = CALLS[name].split()
    for word in START & set(words):
        Path(word).rename(f"./{odd}{word}")
    for one in outputs(CALLS[name]):
        if Path(one).exists():
            Path(one).rename(f"w/{odd}{Path(one).name}")
    call = [f"./{odd}{word}" if word in START else word for word in words]
    call = [f"w/{odd}{word[2:]}" if word in outputs(CALLS[name]) else word for word in call]
    status = run(call)
    text = capfd.readouterr().err
    assert status == (1 if "bad.warc.gz" in words or "mine" in words else 0), text
    assert all(line.isprintable() for line in text.splitlines()), text


READ_ONLY_CALLS = {
    "estimate": "recompress --estimate 0.warc.gz bad.warc.gz",
    "check what exists": "recompress --to gz --level 1 -o w/o 0.warc.gz",
    "verify": "verify c --against 0.cdxj --archives .",
    "verify, archives": "verify 0.warc.gz w/packed/0.warc.gz",
}
COUNTED = {"checking shards", "merging shards", "exporting", "packing", "waiting for readers"}
"""Steps that show no bytes: what is done is counted."""
FAILED = {"bad.warc.gz": 1, "mine": 3}
"""The failures of calls with these words."""
REPORTING = {"indexing", "recompressing", "scanning", "copying", "estimating"}
"""The steps that meet them."""


@pytest.mark.parametrize("name", [*CALLS, *READ_ONLY_CALLS])
def test_the_progress_of_each_step_ends_when_all_is_done(name: str, world: Path) -> None:
    """Else a bar stays short of its end, and whoever follows a run waits for the rest."""
    call = {**CALLS, **READ_ONLY_CALLS}[name]
    if name == "check what exists":
        run(call)
    steps: dict[str, Step] = {}
    with listened_to(lambda step: steps.update({step.name: step})):
        run(call)
    wanted = next((number for word, number in FAILED.items() if word in call.split()), 0)
    for step in steps.values():
        assert step.done == (step.total or step.done)
        assert step.bytes >= step.total_bytes
        assert bool(step.total_bytes) == (step.total > 0 and step.name not in COUNTED)
        assert step.failures == (wanted if step.name in REPORTING else 0)
