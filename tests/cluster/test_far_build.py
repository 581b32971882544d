"""A build whose tasks are on other machines, into a directory that all share: it owns a directory, and then switches.

The tasks run in this process here, as those of Spark do on its nodes.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cdxmill.cluster.own_run import RUN
from cdxmill.commands.clusters.build import BuildSummary, build
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.per_archive import index
from cdxmill.commands.per_archive.index import IndexOptions
from cdxmill.errors import UsageError
from cdxmill.inputs.named import Input, named_input
from cdxmill.running.failures import Failures

from .test_remote_switch import kill_before

OPTIONS = ZipnumOptions(shards=2, location="gone", quiet=True, is_far=True)
MOST_STEPS, STRIDE = 70, 6
"""More than a build has of those before which it is killed. Each case has other ones; a run with all of them takes a minute."""


@pytest.fixture(autouse=True)
def one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def inputs(pywb_warcs: Path) -> list[Input]:
    return [named_input(str(pywb_warcs / name), name) for name in ("example.warc.gz", "dupes.warc.gz")]


def built(inputs: list[Input], place: Path, *, is_far: bool = True, replaces: bool = False) -> BuildSummary:
    options = replace(OPTIONS, is_far=is_far, replace=replaces)
    return build(inputs, place, IndexOptions(quiet=True), options, Failures(printed=False))


def content(place: Path) -> dict[str, bytes]:
    """All files, without the records of runs."""
    own = {".finished.json", ".outputs.tsv"}
    files = [path for path in place.rglob("*") if path.is_file() and path.name not in own]
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


@pytest.fixture
def expected(inputs: list[Input], tmp_path: Path) -> dict[str, bytes]:
    built(inputs, tmp_path / "expected", is_far=False)
    return content(tmp_path / "expected")


def prepare(case: str, inputs: list[Input], place: Path) -> None:
    """What is in the directory before the build."""
    if case == "another cluster":
        built(inputs[:1], place)
    elif case == "indexes of a stopped build":
        built(inputs, place, is_far=False)
        for name in ("cluster.json", "cluster.idx", "cluster.loc", ".finished.json", "archives.tsv"):
            (place / name).unlink(missing_ok=True)
        for path in [
            *place.glob("cdx-*"),
            *place.glob("part-*"),
            *place.glob("cluster*"),
            *place.glob("splits*"),
        ]:
            path.unlink()
    if case != "nothing":
        (place / "cdx").mkdir(parents=True, exist_ok=True)
        (place / "cdx/mine.txt").write_text("mine")


@pytest.mark.parametrize("case", ["nothing", "another cluster", "indexes of a stopped build"])
def test_a_kill_before_any_step_leaves_no_half_cluster_and_a_rerun_completes_it(
    case: str, inputs: list[Input], expected: dict[str, bytes], tmp_path: Path
) -> None:
    mine = {} if case == "nothing" else {"cdx/mine.txt": b"mine"}
    kills = 0
    prepare(case, inputs, tmp_path / "before")
    for step in range(len(case) % STRIDE, MOST_STEPS, STRIDE):
        place = tmp_path / f"{step}/C"
        if case != "nothing":
            shutil.copytree(tmp_path / "before", place)
        before = content(place)
        with pytest.MonkeyPatch.context() as patch:
            kill_before(step, patch)
            try:
                built(inputs, place, replaces=True)
                is_killed = False
            except KeyboardInterrupt:
                is_killed = True
        kills += is_killed
        found = {name: data for name, data in content(place).items() if not name.startswith(".")}
        assert case != "another cluster" or "cluster.json" in found, "a disk exchanges the directories"
        if "cluster.json" in found:
            of_cluster = [name for name in found if "/" not in name]
            whole = expected if found["cluster.json"] == expected["cluster.json"] else before
            assert {name: whole[name] for name in of_cluster if name in whole} == {
                name: found[name] for name in of_cluster if name in whole
            }, step
        built(inputs, place, replaces=True)
        assert content(place) == expected | mine, step
        assert [path.name for path in place.parent.iterdir()] == ["C"], step
        assert [path.name for path in place.iterdir() if path.is_dir()] == ["cdx"], step
        if not is_killed:
            break
    assert 5 < kills < MOST_STEPS // STRIDE


def test_an_older_run_that_wakes_up_changes_nothing(
    inputs: list[Input], expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks write to the directory of that run."""
    woken = []
    real = index.index_one

    def late(task: index.IndexTask) -> index.IndexedArchive:
        woken.append(task)
        raise KeyboardInterrupt

    monkeypatch.setattr(index, "index_one", late)
    with pytest.raises(KeyboardInterrupt):
        built(inputs, tmp_path / "C")
    monkeypatch.setattr(index, "index_one", real)
    built(inputs, tmp_path / "C")
    assert content(tmp_path / "C") == expected
    real(woken[0])
    assert {
        name: data for name, data in content(tmp_path / "C").items() if not name.startswith(RUN)
    } == expected


def test_what_a_killed_run_on_one_machine_left_beside_a_cluster_is_replaced(
    inputs: list[Input], expected: dict[str, bytes], tmp_path: Path
) -> None:
    """And the directory of the run has the access rights of the cluster, which it becomes."""
    place = tmp_path / "C"
    built(inputs[:1], place)
    place.chmod(0o750)
    (tmp_path / ".C.new").mkdir()
    for name in (".replaces", "cdx-00000.gz"):
        (tmp_path / ".C.new" / name).touch()
    built(inputs, place, replaces=True)
    assert content(place) == expected
    assert place.stat().st_mode & 0o777 == 0o750
    assert {path.name for path in tmp_path.iterdir()} == {"C", "expected"}


def test_indexes_of_a_killed_run_with_other_archives_are_used(
    inputs: list[Input], expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cdxmill.commands.clusters import build as building

    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    place = tmp_path / "C"
    with monkeypatch.context() as patch:
        patch.setattr(building, "_zipnum", killed)
        with pytest.raises(KeyboardInterrupt):
            built(inputs[:1], place)
        (first,) = place.glob(f"{RUN}*")
        shutil.copytree(place, tmp_path / "D")
        shutil.copytree(first, tmp_path / "woken")
        with pytest.raises(KeyboardInterrupt):
            built(inputs, place)
    summary = built(inputs, tmp_path / "D")
    assert (summary.indexed.files, summary.indexed.kept) == (1, 1)
    assert content(tmp_path / "D") == expected
    shutil.copytree(tmp_path / "woken", first)  # a task of the first run has written again
    summary = built(inputs, place)
    assert (summary.indexed.files, summary.indexed.kept) == (0, 2), "it uses those of its own killed run"
    assert content(place) == expected


def test_a_list_of_somebody_is_not_replaced(inputs: list[Input], tmp_path: Path) -> None:
    (tmp_path / "C/cdx").mkdir(parents=True)
    (tmp_path / "C/cdx/failures.tsv").write_text("mine\n")
    with pytest.raises(UsageError, match=r"failures.tsv: is not of cdxmill"):
        built(inputs, tmp_path / "C")
    assert (tmp_path / "C/cdx/failures.tsv").read_text() == "mine\n"
