"""Files beside an output that a killed run has to write again, and outputs of archives that are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.errors import InputError
from cdxmill.outputs.gone import note_of_gone, outputs_of_gone
from cdxmill.outputs.proofs import is_proof, read_proof
from cdxmill.outputs.record import OutputRow, append_made
from cdxmill.outputs.side_files import renewed, retire, retired_of
from cdxmill.outputs.time import output_time
from cdxmill.storage.location import Location


def test_a_side_file_that_was_removed_is_to_be_written_again(tmp_path: Path) -> None:
    sides = [Location(str(tmp_path / f"{name}.cdx.gz")) for name in ("a", "b", "sub/c")]
    (tmp_path / "sub").mkdir()
    for side in sides[1:]:
        with side.write_atomic() as file:
            file.write(b"index")
    for side in sides:
        retire(side)
        assert not side.exists()
    assert retired_of(sides) == {*sides[1:]}  # the first did not exist
    renewed(sides[1])
    assert retired_of(sides) == {sides[2]}
    assert retired_of([]) == set()


def test_outputs_are_named_whose_local_archives_are_gone(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    archives = {
        "a": "/gone",
        "b": str(tmp_path / "there"),
        "c": "s3://bucket/gone",
        "d": "/gone",
        "e": "/gone",
    }
    for name, archive in archives.items():
        append_made(tmp_path, OutputRow(name, archive, "s", "9-t", 1, "0f", 1))
        if name != "e":
            (tmp_path / name).touch()
    assert outputs_of_gone(tmp_path, {"d"}) == ["a"]
    assert outputs_of_gone(tmp_path, set()) == ["a", "d"]
    assert outputs_of_gone("s3://bucket/out", set()) == []


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a"], "1 index is of an archive that is gone (a)"),
        (["a", "b"], "2 indexes are of archives that are gone (a, b)"),
        (["a", "b", "c"], "3 indexes are of archives that are gone (a, b, c)"),
        (["a", "b", "c", "d"], "4 indexes are of archives that are gone (a, b, c, ...)"),
    ],
)
def test_a_note_names_the_first_indexes_of_archives_that_are_gone(names: list[str], told: str) -> None:
    assert note_of_gone("out", names) == f"out: note: {told}; delete what zipnum should not read"


def test_a_file_that_is_no_proof_is_known(tmp_path: Path) -> None:
    place = Location(str(tmp_path / "a.proof.json"))
    assert read_proof(place) is None
    for text in ("", "{}", "[1]", "mine"):
        (tmp_path / place.name).write_text(text)
        assert not is_proof(place)
        with pytest.raises(InputError, match="move it away"):
            read_proof(place)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [("0", "19700101000000"), ("86399", "19700101235959"), ("", None), ("-1", None), ("\u0661", None)],
)
def test_the_time_of_outputs_can_be_set(
    seconds: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    assert output_time() == expected or (expected is None and output_time() > "2024")
