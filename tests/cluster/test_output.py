"""Where a run may write a cluster, what of an earlier run it deletes before, and what it leaves if it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cluster import output
from cdxmill.cluster.output import (
    Output,
    check_output,
    check_replaceable,
    hold_new,
    open_output,
    put_in_place,
)
from cdxmill.cluster.switch import switch
from cdxmill.cluster.write import RunRecord, read_record, write_record
from cdxmill.errors import InputError, OutageError, UsageError
from cdxmill.formats.clusters.split_points import format_sequence_file, format_text
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import Location, locate

from .test_left_behind import put_both
from .test_switch import build, foreign_files, is_whole, make_old, new_cdx, new_directory, old_cdx

__all__ = ["new_cdx", "old_cdx"]

RUN, OTHER = "aaaaaaaa", "bbbbbbbb"


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def put(directory: Path, *names: str, text: str = "mine") -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


FOREIGN = [
    *("cdx-00002.gz", "part-00002", "overlay-00000-1.gz", "cluster.idx", "cluster.summary", "all.idx"),
    *("cluster.loc", "archives.tsv", ".published.json", "splits.txt", "splits.seq", ".finished.json"),
]


@pytest.mark.parametrize(
    ("shards", "own"),
    [
        (None, set()),
        ("absent", set()),
        ("x", set()),
        ("null", set()),
        ("2", set()),
        ("3", {"cdx-00002.gz", "part-00002"}),
    ],
)
@pytest.mark.parametrize("name", [*FOREIGN, "notes.txt", ".work"])
def test_a_directory_with_files_that_would_be_overwritten_is_refused(
    name: str, shards: str | None, own: set[str], tmp_path: Path
) -> None:
    """An unfinished run has noted how many shards are its own. Files beside them it writes again."""
    put(tmp_path, *([name] if name != ".work" else []))
    if shards == "absent":
        put(tmp_path, ".work/job.json")
        own = {".work"}
    elif shards is not None:
        put(tmp_path, ".work/job.json")
        put(tmp_path, ".work/shards.json", text=shards)
        beside = set(FOREIGN) - {"cdx-00002.gz", "part-00002", "overlay-00000-1.gz", ".finished.json"}
        own = own | beside | {".work"}
    elif name == ".work":
        put(tmp_path, ".work/mine.txt")
    if name in {*own, "notes.txt"}:
        assert check_output(locate(tmp_path), RUN, replace=False) is None
        return
    with pytest.raises(UsageError, match=r"is (not of|a directory of somebody else)"):
        check_output(locate(tmp_path), RUN, replace=True)


def test_the_record_of_a_run_that_was_killed_before_its_manifest_is_no_file_of_somebody(
    tmp_path: Path,
) -> None:
    write_record(locate(tmp_path), RunRecord(OTHER, [], [], []))
    assert check_output(locate(tmp_path), RUN, replace=False) is None


@pytest.mark.parametrize("name", ["splits.txt", "splits.seq"])
@pytest.mark.parametrize(("points", "is_refused"), [([b"b"], False), ([b"c"], True), (None, True)])
def test_split_files_stay_if_they_have_other_points_than_the_run(
    name: str, points: list[bytes] | None, is_refused: bool, tmp_path: Path
) -> None:
    data = {"splits.txt": format_text([b"b"]), "splits.seq": format_sequence_file([b"b"])}
    (tmp_path / name).write_bytes(data[name])
    try:
        assert check_output(locate(tmp_path), RUN, replace=False, points=points) is None
        found = False
    except UsageError as error:
        found = f"has {name}, which is not of a cluster of this command" in str(error)
    assert found is is_refused


def test_what_a_finished_run_left_is_deleted_and_what_another_run_builds_beside_it_is_not(
    old_cdx: Path, tmp_path: Path
) -> None:
    """The lock shows that the run was killed."""
    directory = tmp_path / "C"
    build(directory, old_cdx, 3)
    whole = names_in(directory)
    put(directory, ".lock", text="process 1 on a since 2020: cdxmill zipnum\n")
    put(directory, ".work/job.json", ".cdx-00000.gz.7-01234567.tmp")
    put(new_directory(directory), ".replaces", "cdx-00000.gz")
    build(directory, old_cdx, 3)
    assert names_in(directory) == whole
    assert names_in(new_directory(directory)) == {".replaces", "cdx-00000.gz"}
    put(directory, ".work/job.json")
    build(directory, old_cdx, 3)
    assert names_in(directory) == whole


def test_a_directory_beside_a_new_cluster_stays_if_it_has_no_mark(old_cdx: Path, tmp_path: Path) -> None:
    put(new_directory(tmp_path / "C"), "mine.txt")
    build(tmp_path / "C", old_cdx, 3)
    assert names_in(new_directory(tmp_path / "C")) == {"mine.txt"}


@pytest.mark.parametrize("is_far", [True, False])
@pytest.mark.parametrize("error", [InputError("a", "is corrupt"), OutageError("a", "cannot be read")])
@pytest.mark.parametrize("has_cluster", [True, False])
def test_a_run_that_fails_deletes_only_what_it_has_built_elsewhere(
    has_cluster: bool, error: InputError, is_far: bool, old_cdx: Path, tmp_path: Path
) -> None:
    """After an outage, a rerun continues with that."""
    directory = tmp_path / "C"
    put(directory, "notes.txt")
    if has_cluster:
        build(directory, old_cdx, 3)
    before = names_in(directory)
    with (
        pytest.raises(InputError, match=error.reason),
        open_output(locate(directory), RUN, True, Failures(), is_far=is_far) as opened,
    ):
        work = Path(opened.work.local)
        put(work, ".work/job.json")
        raise error
    stays = isinstance(error, OutageError)
    if work == directory:
        assert names_in(directory) == before | {".work"}
        return
    assert work == (directory / f".run-{RUN}" if is_far else new_directory(directory))
    assert work.exists() is stays
    assert names_in(directory) == before | ({work.name} if stays and is_far else set())


@pytest.mark.parametrize("error", [InputError, OutageError])
def test_an_error_during_the_switch_loses_nothing(
    error: type[InputError], old_cdx: Path, new_cdx: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The new cluster is in its place, and the old one beside it."""
    directory = tmp_path / "C"
    make_old(directory, old_cdx)

    def failing(place: Location) -> list[str]:
        raise error(place.text, "input/output error")

    with monkeypatch.context() as patch, pytest.raises(error):
        patch.setattr("cdxmill.cluster.switch.repair", failing)
        build(directory, new_cdx, 2, replace=True)
    assert is_whole(directory, new_cdx)
    output.mend(locate(directory), print)
    assert is_whole(directory, new_cdx)
    assert len(foreign_files(directory)) == 2


@pytest.mark.parametrize("is_far", [True, False])
def test_the_directories_of_killed_runs_are_deleted_but_that_of_the_same_run(
    is_far: bool, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    for run in (RUN, OTHER):
        put(directory, f".run-{run}/.replaces", f".run-{run}/cdx-00000.gz")
    put(directory, ".run-cccccccc/mine.txt", ".run-mine/.replaces")
    with open_output(locate(directory), RUN, False, Failures(), is_far=is_far):
        stay = {".lock", ".run-cccccccc", ".run-mine", *([f".run-{RUN}"] if is_far else [])}
        assert names_in(directory) == stay
        assert not is_far or (directory / f".run-{RUN}/cdx-00000.gz").exists()


@pytest.mark.parametrize("is_copy", [True, False])
def test_what_a_killed_replacement_has_built_stays_for_the_rerun_unless_it_was_a_publication(
    is_copy: bool, old_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    build(directory, old_cdx, 3)
    names = {".replaces", ".work", "cdx-00000.gz", *([".published.json"] if is_copy else [])}
    put(new_directory(directory), *names - {".work"}, ".work/job.json")
    with open_output(locate(directory), RUN, True, Failures()):
        assert names_in(new_directory(directory)) == {".lock", *([".replaces"] if is_copy else names)}


@pytest.mark.parametrize("record", [None, OTHER])
def test_a_finished_new_cluster_that_is_not_of_this_run_is_discarded(
    record: str | None, old_cdx: Path, new_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    new = put_both(directory, old_cdx, new_cdx)
    (new / ".finished.json").unlink()
    if record is not None:
        write_record(locate(new), RunRecord(record, [], [], []))
    with open_output(locate(directory), RUN, True, Failures()) as opened:
        assert opened.finished is None
        assert names_in(new) == {".replaces", ".lock"}
    assert is_whole(directory, old_cdx)


def test_replace_is_not_advised_where_it_would_be_refused(old_cdx: Path, tmp_path: Path) -> None:
    directory = tmp_path / "C"
    build(directory, old_cdx, 3)
    with pytest.raises(UsageError, match="--replace builds the new one beside it"):
        check_output(locate(directory), RUN, replace=False)
    (directory / "cluster.json").write_text("{}")
    with pytest.raises(UsageError, match=r"cluster\.json: is corrupt.*; move this directory away"):
        check_output(locate(directory), RUN, replace=False)
    (directory / "cluster.json").unlink()
    with pytest.raises(UsageError, match=r"cluster\.json: .*; move this directory away"):
        check_replaceable(locate(directory))


def test_a_record_has_the_failures_of_its_run_and_the_files_that_stay(tmp_path: Path) -> None:
    """A run that writes no indexes keeps those of the cluster that it replaces, but not its list of archives."""
    place, work = locate(tmp_path / "C"), locate(tmp_path / "new")
    failures = Failures(printed=False)
    failures.add("a", None, "before the run")
    opened = Output(place, work, failures)
    failures.add("b", None, "is corrupt")
    opened.record(RUN, [1], [])
    expected = RunRecord(RUN, [1], [Failure("b", None, "is corrupt")], [])
    assert read_record(work) == expected
    write_record(place, RunRecord(OTHER, [2], [], ["cdx/a.cdx.gz", "archives.tsv"]))
    opened.record(RUN, [1], [])
    assert read_record(work) == expected._replace(files=["cdx/a.cdx.gz"])
    opened.record(RUN, [1], ["cdx/b.cdx.gz", "archives.tsv"])
    assert read_record(work) == expected._replace(files=["cdx/b.cdx.gz", "archives.tsv"])


def test_both_directories_are_held_while_they_are_exchanged_and_neither_lock_stays(
    old_cdx: Path, new_cdx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, built = tmp_path / "C", tmp_path / "C/.run-aaaaaaaa"
    put_both(directory, old_cdx, new_cdx).rename(built)
    put(directory, "notes.txt")
    put(built, "notes.txt", text="theirs")
    held, notes = [], list[str]()

    def looked(*given: object) -> list[str]:
        held.append((built / ".lock").exists())
        return switch(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(output, "switch", looked)
    put_in_place(locate(directory), notes.append, built=locate(built))
    assert held == [True]
    left = tmp_path / ".C.old/notes.txt"
    assert notes == [f"{left}: note: this file stays here, because the new cluster has one of the same name"]
    assert not (directory / ".lock").exists()
    with hold_new(locate(directory), print):
        assert names_in(new_directory(directory)) == {".replaces", ".lock"}


@pytest.mark.parametrize("is_far", [True, False])
def test_what_an_unfinished_run_has_left_is_deleted_if_this_one_cannot_continue_it(
    is_far: bool, tmp_path: Path
) -> None:
    """Shards and parts up to the number that it has noted, and no others."""
    own = {"cdx-00000.gz", "part-00000", "cdx-00001.gz"}
    put(tmp_path, *own, ".work/job.json", "notes.txt")
    put(tmp_path, ".work/shards.json", text="2")
    with open_output(locate(tmp_path), RUN, False, Failures(), is_far=is_far) as opened:
        if is_far:
            assert not (tmp_path / ".work").exists()
        else:
            assert names_in(tmp_path) >= own
            opened.clear()
        assert not names_in(tmp_path) & own
        assert (tmp_path / "notes.txt").exists()


def test_a_run_elsewhere_touches_no_file_of_the_cluster_before_it_is_replaced(
    old_cdx: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    build(directory, old_cdx, 3)
    put(directory, ".work/job.json")
    put(directory, ".work/shards.json", text="3")
    before = names_in(directory)
    with open_output(locate(directory), RUN, True, Failures(), is_far=True):
        assert names_in(directory) == before | {".lock", f".run-{RUN}"}


def test_what_would_have_replaced_a_cluster_that_is_gone_is_deleted(tmp_path: Path) -> None:
    put(new_directory(tmp_path / "C"), ".replaces", "cdx-00000.gz")
    with open_output(locate(tmp_path / "C"), RUN, False, Failures()):
        assert not new_directory(tmp_path / "C").exists()


FAILED = [Failure("a", None, "is corrupt")]


@pytest.mark.parametrize(
    ("run", "failures", "replace", "is_whole", "expected"),
    [
        (RUN, [], False, True, "finished"),
        (RUN, [], True, True, "finished"),
        (RUN, FAILED, False, True, "finished"),
        (RUN, FAILED, True, True, "built again"),
        (RUN, [], False, False, "this cluster, but part-00000 is missing"),
        (RUN, [], True, False, "built again"),
        (OTHER, [], False, True, "a cluster of other inputs or options"),
        (OTHER, [], True, True, "built again"),
        (None, [], False, True, "a cluster of other inputs or options"),
        (None, [], True, True, "built again"),
    ],
)
def test_only_a_whole_cluster_of_the_same_run_is_finished(
    run: str | None,
    failures: list[Failure],
    replace: bool,
    is_whole: bool,
    expected: str,
    old_cdx: Path,
    tmp_path: Path,
) -> None:
    """With --replace, one with failures is built again: they may have been those of a disk."""
    place = locate(tmp_path / "C")
    build(tmp_path / "C", old_cdx, 1)
    (tmp_path / "C/.finished.json").unlink()
    if run is not None:
        write_record(place, RunRecord(run, [], failures, []))
    if not is_whole:
        (tmp_path / "C/part-00000").unlink()
    if "cluster" in expected:
        with pytest.raises(UsageError, match=f"C: already has {expected}; --replace"):
            check_output(place, RUN, replace)
        return
    reported = Failures(printed=False)
    with open_output(place, RUN, replace, reported) as opened:
        assert (opened.finished is not None) is (expected == "finished")
    assert reported.items == (failures if expected == "finished" else [])
