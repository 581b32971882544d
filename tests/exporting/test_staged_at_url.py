"""How a table at a URL takes the place of another one: each step of it, in a directory of the disk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.exporting import staging_at_url
from cdxmill.commands.exporting.listed_files import LIST
from cdxmill.commands.exporting.staging_at_url import staged_at_url
from cdxmill.errors import StoppedError, UsageError
from cdxmill.running.lock import LOCK, hold, run_id
from cdxmill.storage.interface import Properties
from cdxmill.storage.location import Location, locate

SWITCHED = "_cdxmill/switched.json"
HELD = "already exists; use --replace to replace it"


def own_run() -> str:
    return f".run-{run_id()}"


def files_in(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def put(directory: Path, *names: str) -> None:
    """Write files. A list has the names of the others."""
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        listed = {one: 1 for one in names if one not in (LIST, SWITCHED)}
        (directory / name).write_text(json.dumps({"files": listed}) if name in (LIST, SWITCHED) else name)


def export(directory: Path, *names: str, replace: bool = False) -> None:
    with staged_at_url(locate(directory), replace, print) as own:
        put(Path(own.local), *names, LIST)


def test_a_run_writes_to_a_directory_of_its_own_and_holds_the_place(tmp_path: Path) -> None:
    with staged_at_url(locate(tmp_path / "t"), False, print) as own:
        assert own == locate(tmp_path / "t") / own_run()
        assert files_in(tmp_path / "t") == sorted([LOCK, f"{own_run()}/.replaces"])
        put(Path(own.local), "a", "d=1/b", LIST)
    assert files_in(tmp_path / "t") == sorted([LIST, "a", "d=1/b"])
    assert sorted(path.name for path in Path(tmp_path, "t").iterdir()) == ["_cdxmill", "a", "d=1"]


@pytest.mark.parametrize(
    ("there", "reason", "replaced"),
    [
        ((), "", ""),
        ((LIST, "a", "d/b"), HELD, ""),
        ((LIST,), HELD, ""),
        ((SWITCHED, "a", "d/b"), "", ""),
        ((SWITCHED, LIST), HELD, ""),
        ((".run-01234567/.replaces", ".run-01234567/x"), "", ""),
        (("a",), HELD, r"no export wrote \(a\)"),
        (("d/LIST", "d/.lock"), HELD, r"no export wrote \(d/.lock\)"),
    ],
    ids=["nothing", "table", "list", "killed", "killed-early", "killed-run", "own-file", "own-names"],
)
@pytest.mark.parametrize("replace", [False, True])
def test_what_an_export_wrote_is_replaced_if_that_was_asked_for(
    there: tuple[str, ...], reason: str, replaced: str, replace: bool, tmp_path: Path
) -> None:
    tmp_path.joinpath("t").mkdir()
    put(tmp_path / "t", *there)
    before = files_in(tmp_path / "t")
    if expected := replaced if replace else reason:
        with pytest.raises(UsageError, match=expected):
            export(tmp_path / "t", "new", replace=replace)
        assert files_in(tmp_path / "t") == before
    else:
        export(tmp_path / "t", "new", replace=replace)
        assert files_in(tmp_path / "t") == [LIST, "new"]


def test_a_directory_that_only_looks_like_that_of_a_run_stays(tmp_path: Path) -> None:
    put(tmp_path / "t", ".run-mine/a", ".run-00000000/a")
    export(tmp_path / "t", "new")
    assert files_in(tmp_path / "t") == [".run-00000000/a", ".run-mine/a", LIST, "new"]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the switch does, in order. Nothing is moved or deleted."""
    found: list[str] = []

    def noted(name: str) -> Callable[..., Any]:
        def note(*places: Location) -> None:
            found.append(" ".join([name, *(re.sub(r".*?/t/", "", str(place)) for place in places)]))

        return note

    for name in ("remove", "remove_tree", "move"):
        monkeypatch.setattr(Location, name, noted(name))
    monkeypatch.setattr(staging_at_url, "renew_held", noted("renew"))
    return found


@pytest.mark.parametrize(
    ("has_directories", "moved"),
    [(True, ["a", "d=1", "e=1"]), (False, ["a", "d=1/b", "d=1/c", "e=1/b"])],
)
def test_the_list_is_deleted_first_and_moved_last(
    has_directories: bool, moved: list[str], tmp_path: Path, steps: list[str]
) -> None:
    place, target = tmp_path / "t", locate(tmp_path / "t")
    object.__setattr__(target, "properties", Properties(has_directories=has_directories))
    put(place / ".run-1", ".replaces", "a", "d=1/b", "d=1/c", "e=1/b", LIST)
    old = {"f=1/x", "f=1/y", "old", LIST, SWITCHED}
    staging_at_url._switch(locate(place / ".run-1"), target, old)
    expected = [f"remove {LIST}"]
    for name in ("f=1", "old"):
        expected += [f"remove_tree {name}", "renew"]
    for name in (*moved, LIST):
        expected += [f"move .run-1/{name} {name}", "renew"]
    assert steps == [*expected, f"remove {SWITCHED}"]
    known = ["_cdxmill/export.json", "a", "d=1/b", "d=1/c", "e=1/b", "f=1/x", "f=1/y", "old"]
    assert json.loads((place / SWITCHED).read_bytes()) == {"files": known}


def test_a_run_that_lost_its_lock_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "t", "old", LIST)

    def lost() -> None:
        raise StoppedError("another run has taken this directory")

    monkeypatch.setattr(staging_at_url, "check_held", lost)
    with pytest.raises(StoppedError, match="another run"):
        export(tmp_path / "t", "new", replace=True)
    assert files_in(tmp_path / "t") == [LIST, "old"]


def test_a_run_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "t", "old", LIST)
    with pytest.raises(KeyError), staged_at_url(locate(tmp_path / "t"), True, print):
        raise KeyError
    assert files_in(tmp_path / "t") == [LIST, "old"]

    def fails(place: Location) -> None:
        raise StoppedError(f"{place} cannot be deleted")

    monkeypatch.setattr(Location, "remove_tree", fails)
    with pytest.raises(KeyError), staged_at_url(locate(tmp_path / "t"), True, print):
        raise KeyError
    assert files_in(tmp_path / "t") == sorted([f"{own_run()}/.replaces", LIST, "old"])


def test_notes_of_the_lock_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def noted(place: Location, note: Callable[[str], None]) -> AbstractContextManager[bool]:
        asked.extend((place, note))
        return hold(place, note)

    monkeypatch.setattr(staging_at_url, "hold", noted)
    with staged_at_url(locate(tmp_path / "t"), False, print) as own:
        put(Path(own.local), LIST)
    assert asked == [locate(tmp_path / "t"), print]
