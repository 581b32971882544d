"""Sequences of commands on one directory: whatever came before, a command ends as it does where no output is yet."""

from __future__ import annotations

from pathlib import Path

from bench.sequences.__main__ import run
from bench.sequences.commands import KINDS

SEQUENCES = 150


def test_a_sequence_of_commands_ends_as_one_command_does(tmp_path: Path) -> None:
    ends, findings = run(1, SEQUENCES, tmp_path)
    assert not findings, "the scripts above show them; python -m bench.sequences"
    assert {kind for kind in KINDS if not ends[f"{kind} 0"] or not ends[f"{kind} 2"]} == set()
    assert sum(number for end, number in ends.items() if end.endswith(" killed")) > SEQUENCES / 20
