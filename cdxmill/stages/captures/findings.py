"""What reading an archive has found besides its records."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdxmill.capture import Damage, Note

MAX_DAMAGE = 10_000
"""Damage that is reported separately, per file. More would take memory and nobody would read it."""


@dataclass
class Findings:
    """The number of captures in an archive, and the damage and the notes about it."""

    damage: list[Damage] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    captures: int = 0
    _more: int = 0

    def add(self, found: Damage | Note) -> None:
        """Add damage or a note. All damage after the first MAX_DAMAGE becomes one item, the last of the list."""
        if isinstance(found, Note):
            self.notes.append(found)
        elif len(self.damage) < MAX_DAMAGE:
            self.damage.append(found)
        else:
            self._add_to_last(found)

    def _add_to_last(self, found: Damage) -> None:
        self._more += 1
        first = found.offset if self._more == 1 else self.damage.pop().offset
        more = f"{self._more} more errors up to offset {found.offset}"
        self.damage.append(Damage(first, f"{more}, the last one: {found.reason}", found.hint))
