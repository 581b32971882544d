"""A work directory that a run was killed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.running.resume import WorkDirectory
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
