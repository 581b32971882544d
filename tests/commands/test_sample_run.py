"""One run of `sample`: which files are read, what is refused, and what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands import sample as sampling
from cdxmill.commands.sample import choose_files, sample
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.split_points import parse_sequence_file, parse_text
from cdxmill.options.clusters import Sampling
from cdxmill.running.failures import Failures
from cdxmill.tasks.sampling import SAMPLES_PER_SHARD

from ..material.cdx_files import write_plain


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with `cdx`, four files of five lines."""
    monkeypatch.chdir(tmp_path)
    Path("cdx").mkdir()
    for number in range(4):
        lines = [b"com,%c%d)/ 2020 {}" % (letter, number) for letter in b"abcde"]
        write_plain(Path(f"cdx/{number}.cdxj"), lines)
    return tmp_path


class Told(Failures):
    """Failures that keep their notes."""

    def __init__(self) -> None:
        super().__init__(printed=False)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def points(*inputs: str, told: Told | None = None, quiet: bool = False, **options: Any) -> list[bytes]:
    asked = Sampling([*inputs] or "cdx", **{"shards": 2, "processes": 1, **options})
    asked.quiet = quiet
    return sample(asked, told or Told())


PATHS = [f"{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("fraction", "number"),
    [(1, 10), (0.95, 10), (0.9, 9), (0.91, 10), (0.5, 5), (0.1, 1), (0.11, 2), (0.001, 1), (0.3, 3)],
)
def test_a_fraction_of_the_files_is_chosen_in_their_order(fraction: float, number: int) -> None:
    chosen = choose_files(PATHS, fraction, 0)
    assert len(chosen) == number
    assert chosen == sorted(set(chosen))
    assert choose_files(PATHS, fraction, 0) == chosen
    assert len({tuple(choose_files(PATHS, 0.5, seed)) for seed in range(9)}) > 1
    assert choose_files([], fraction, 0) == []


@pytest.mark.parametrize("fraction", [0, -0.1, 1.001, 2, float("nan")])
def test_a_fraction_is_above_0_and_at_most_1(fraction: float) -> None:
    with pytest.raises(UsageError, match="--fraction must be above 0 and at most 1"):
        points(fraction=fraction)


@pytest.mark.parametrize(
    ("fraction", "quiet", "notes"),
    [
        (1, False, []),
        (0.5, False, ["note: 2 files of 4 read"]),
        (0.2, False, ["note: 1 file of 4 read"]),
        (0.5, True, []),
    ],
)
def test_what_is_not_read_is_said(fraction: float, quiet: bool, notes: list[str]) -> None:
    told = Told()
    assert len(points(told=told, fraction=fraction, quiet=quiet)) == 1
    assert told.notes == notes


def test_points_are_written_twice_and_replaced_on_request() -> None:
    found = points(output="s.txt", shards=5)
    assert len(found) == 4
    assert parse_text(Path("s.txt").read_bytes()) == found
    assert parse_sequence_file(Path("s.seq").read_bytes()) == found
    for inputs in (["cdx"], ["absent"]):  # reported before anything is read
        with pytest.raises(UsageError, match="--replace"):
            points(*inputs, output="s.txt")
    Path("s.txt").unlink()
    with pytest.raises(UsageError, match=r"s\.seq"):
        points(output="s.txt")
    assert points(output="s.txt", replace=True) == parse_sequence_file(Path("s.seq").read_bytes())
    assert points() == parse_text(Path("s.txt").read_bytes())


def test_an_input_is_never_an_output() -> None:
    write_plain(Path("s.txt"), [b"com,a)/ 2020 {}"])
    write_plain(Path("s.seq"), [b"com,a)/ 2020 {}"])
    for name in ("s.txt", "s.seq"):
        with pytest.raises(UsageError, match=f"{name}: is an input"):
            points(name, output="s.txt", replace=True)
        assert Path(name).read_bytes() == b"com,a)/ 2020 {}\n"


def test_what_another_run_has_written_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(*given: object) -> list[tuple[float, bytes]]:
        Path("s.seq").write_bytes(b"of another run")
        assert given[1:5] == (3, 2 * SAMPLES_PER_SHARD, 1, True)
        return [(0.1, b"a"), (0.2, b"b")]

    monkeypatch.setattr(sampling, "sample_inventory", meanwhile)
    with pytest.raises(UsageError, match=r"s\.seq"):
        points(output="s.txt", seed=3, quiet=True)
    assert Path("s.seq").read_bytes() == b"of another run"
    assert not Path("s.txt").exists()


@pytest.mark.parametrize("output", [None, "s.txt"])
def test_without_a_line_that_can_be_read_there_are_no_points(output: str | None) -> None:
    Path("bad.cdxj").write_bytes(b"no line of an index\n")
    told = Told()
    with pytest.raises(InputError) as raised:
        points("bad.cdxj", told=told, output=output)
    why = "no line can be read, so there are no split points"
    assert str(raised.value) == f"{output or 'sample'}: {why}"
    assert told.count == 1
    assert not Path("s.txt").exists()
    assert len(points("bad.cdxj", "cdx", output=output)) == 1


def test_files_without_lines_have_no_points() -> None:
    write_plain(Path("empty.cdxj"), [b""])
    told = Told()
    assert points("empty.cdxj", told=told, output="s.txt") == []
    assert told.notes == ["note: 1 shard, not 2: no line was found"]
    assert Path("s.txt").read_bytes() == b""
