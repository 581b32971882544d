"""A work directory that a run was killed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cdxmill.errors import AbsentError, UsageError
from cdxmill.running import resume
from cdxmill.running.progress import Progress
from cdxmill.running.resume import WorkDirectory, check_work, is_own_work, remove_work
from cdxmill.storage.local import temporary_name
from cdxmill.storage.location import Location


def test_a_directory_that_is_half_deleted_is_nothing_to_continue_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next run would take the plan that is left for a whole one."""
    work = WorkDirectory(tmp_path / ".work", "job")
    work.save("plan", ["a", "b"])
    remove = Location.remove_tree

    def killed(place: Location) -> None:
        if place.name == "plan.json":
            raise KeyboardInterrupt
        remove(place)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Location, "remove_tree", killed)
        work.remove()
    assert (tmp_path / ".work/plan.json").exists()
    assert WorkDirectory(tmp_path / ".work", "job").load("plan") is None
    work.remove()
    assert list(tmp_path.iterdir()) == []


def link(path: Path) -> None:
    (path.parent / "real").mkdir()
    path.symlink_to("real")


def files(*names: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        for name in names:
            (path / name).write_text("mine")

    return make


@pytest.mark.parametrize(
    ("make", "is_own"),
    [
        (files(), True),
        (files("job.json"), True),
        (files("shards.json", "other"), True),
        (files(temporary_name("job.json")), True),
        (files(temporary_name("job.json"), "other"), False),
        (files("job.json.tmp"), False),
        (link, False),
        (lambda path: path.symlink_to("nothing"), False),
        (Path.touch, False),
    ],
)
def test_a_work_directory_is_known_by_its_files(
    make: Callable[[Path], None], is_own: bool, tmp_path: Path
) -> None:
    path, work = tmp_path / ".work", Location(str(tmp_path / ".work"))
    make(path)
    before = sorted(tmp_path.rglob("*"))
    assert is_own_work(work) is is_own
    if is_own:
        WorkDirectory(path, "job").remove()
        assert list(tmp_path.iterdir()) == []
        return
    for use in (lambda: check_work(work), lambda: WorkDirectory(path, "job")):
        with pytest.raises(UsageError, match="cdxmill needs this name"):
            use()
    remove_work(work)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_command_may_have_marks_of_its_own(tmp_path: Path) -> None:
    path, work = tmp_path / ".work", Location(str(tmp_path / ".work"))
    assert not is_own_work(work)
    check_work(work)  # nothing has its name
    assert is_own_work(Location("s3://bucket/.work"))
    files("plan")(path)
    check_work(work, frozenset({"plan"}))
    with pytest.raises(UsageError, match=r"\.work: is a directory of somebody else"):
        check_work(work)


def test_what_shows_whose_a_work_directory_is_goes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    remove = Location.remove_tree

    def noted(place: Location) -> None:
        removed.append(place.name)
        remove(place)

    monkeypatch.setattr(Location, "remove_tree", noted)
    files("a", "shards.json", "job.json", "z")(tmp_path / ".work")
    remove_work(Location(str(tmp_path / ".work")))
    assert removed == ["a", "z", "job.json", "shards.json"]
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_another_job_are_deleted_with_its_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[str] = []

    def begin(job: str) -> WorkDirectory:
        return WorkDirectory(tmp_path / ".work", job, lambda: cleared.append(job))

    begin("one").save("plan", [1])
    assert begin("one").load("plan") == [1]
    assert cleared == ["one"]  # by the first, which found nothing
    assert begin("two").load("plan") is None
    assert cleared == ["one", "two"]
    begin("two").save("plan", [2])
    for boot in (tmp_path / "boot", tmp_path / "absent"):  # the machine was started again
        (tmp_path / "boot").write_text("another")
        monkeypatch.setattr(resume, "_BOOT_ID", boot)
        assert begin("two").load("plan") is None
        begin("two").save("plan", [2])
        assert begin("two").load("plan") == [2]
    assert begin("two").scratch.directory == tmp_path / ".work"


class _Task(NamedTuple):
    number: int


@pytest.mark.parametrize(
    ("kept", "is_valid", "done"),
    [
        (None, lambda _: True, [7]),
        ("[1", lambda _: True, [7]),
        pytest.param("[" * 100_000, lambda _: True, [7], id="nested"),
        ("1", lambda _: True, []),
        ("1", lambda _: False, [7]),
        ("1", lambda result: result["x"], [7]),
        ("{}", lambda result: result["x"], [7]),
        ("1", lambda result: result.x, [7]),
        ('"x"', lambda result: int(result), [7]),
    ],
)
def test_a_result_that_is_not_valid_is_made_again(
    kept: str | None, is_valid: Callable[[Any], bool], done: list[int], tmp_path: Path
) -> None:
    work, ran = WorkDirectory(tmp_path, "job"), list[int]()
    if kept is not None:
        (tmp_path / "step-00007.json").write_text(kept)

    def run(task: _Task) -> int:
        ran.append(task.number)
        return 1

    with Progress("testing", 1, 0, True) as progress:
        assert list(work.run("step", run, [_Task(7)], 1, progress, is_valid)) == [1]
        assert (ran, progress.done) == (done, 1)
    assert work.load("step-00007") == 1


def test_results_at_a_url_survive_a_restart_of_the_machine_and_go_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files: dict[str, bytes] = {}
    cleared: list[int] = []

    @contextmanager
    def write(place: Location) -> Iterator[BytesIO]:
        yield (file := BytesIO())
        files[place.text] = file.getvalue()

    def read(place: Location) -> bytes:
        if place.text not in files:
            raise AbsentError(place.text, "is absent")
        return files[place.text]

    def remove_tree(place: Location) -> None:
        for url in [url for url in files if url.startswith(f"{place.text}/")]:
            del files[url]

    for name, method in (("write_atomic", write), ("read_bytes", read), ("remove_tree", remove_tree)):
        monkeypatch.setattr(Location, name, method)

    def made(job: str, boot: str) -> WorkDirectory:
        monkeypatch.setattr("cdxmill.running.resume._boot", lambda: boot)
        return WorkDirectory("s3://b/.work", job, lambda: cleared.append(1))

    first = made("job", "one")
    assert cleared == [1]
    first.save("a", [7])
    again = made("job", "two")
    assert (again.load("a"), again.load("b"), cleared) == ([7], None, [1])
    other = made("other", "two")
    assert (other.load("a"), cleared, list(files)) == (None, [1, 1], ["s3://b/.work/job.json"])
    other.remove()
    assert files == {}
