"""Split points are written as text and as a SequenceFile; the name given is that of one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cluster.split_files import check_splits, read_splits, write_points, write_splits
from cdxmill.errors import UsageError
from cdxmill.storage.location import Location


@pytest.mark.parametrize(
    ("named", "kind", "text", "sequence"),
    [
        ("x.txt", ".seq", "x.txt", "x.seq"),
        ("x.seq", ".txt", "x.txt", "x.seq"),
        ("x", ".txt", "x", "x.seq"),
        ("x", ".seq", "x.txt", "x"),
        ("x.2026", ".txt", "x.2026", "x.seq"),
        ("x.2026", ".seq", "x.txt", "x.2026"),
    ],
)
def test_the_name_is_that_of_one_kind_and_the_other_is_beside_it(
    named: str, kind: str, text: str, sequence: str, tmp_path: Path
) -> None:
    write_splits([b"com,a)/ 2020"], tmp_path / named, kind)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([text, sequence])
    assert (tmp_path / text).read_bytes() == b"com,a)/ 2020\n"
    assert (tmp_path / sequence).read_bytes().startswith(b"SEQ")
    assert read_splits(tmp_path / sequence) == [b"com,a)/ 2020"]


def test_a_run_that_is_killed_leaves_no_two_files_of_different_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_splits([b"com,a)/ 2020"], tmp_path / "x.txt")

    def kill(place: Location) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Location, "write_atomic", kill)
    with pytest.raises(KeyboardInterrupt):
        write_splits([b"com,b)/ 2020"], tmp_path / "x.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


@pytest.mark.parametrize("beside", ["x.txt", "x.seq"])
def test_neither_file_is_overwritten_without_leave(beside: str, tmp_path: Path) -> None:
    check_splits(tmp_path / "x.txt", replace=False)
    (tmp_path / beside).write_text("mine")
    check_splits(tmp_path / "x.txt", replace=True)
    with pytest.raises(UsageError, match=f"{beside}: already exists"):
        check_splits(tmp_path / "x.txt", replace=False)
    with pytest.raises(UsageError, match="http:// cannot be written"):
        check_splits("http://127.0.0.1:9/x.txt", replace=True)


def test_one_file_is_written_where_the_user_says_and_what_is_no_such_file_is_wrong_usage(
    tmp_path: Path,
) -> None:
    for is_text in (True, False):
        write_points([b"com,a)/ 2020"], tmp_path / "points", is_text)
        assert read_splits(tmp_path / "points") == [b"com,a)/ 2020"]
    (tmp_path / "points").write_bytes(b"SEQ\6cut")
    for name in ("points", "absent"):
        with pytest.raises(UsageError, match=name):
            read_splits(tmp_path / name)
