"""What went wrong: told as it happens, counted for the exit status."""

from __future__ import annotations

import sys

from cdxmill.running.progress import Progress


class Failures:
    """What went wrong, one line each on stderr, counted."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self.count = 0
        self.inputs: set[str] = set()

    def show_on(self, progress: Progress) -> None:
        """Lines go around this step's bar from now on."""
        self._progress = progress

    def add(self, path: str, offset: int | None, reason: str, hint: str = "") -> None:
        """One failure: `path@offset: reason; hint`."""
        self.count += 1
        self.inputs.add(path)
        where = path if offset is None else f"{path}@{offset}"
        self.note(f"{where}: {reason}" + (f"; {hint}" if hint else ""))

    def note(self, text: str) -> None:
        """A line on stderr that is no failure."""
        text = text.replace("\n", "\\n")
        if self._progress is not None:
            self._progress.failures = self.count
            self._progress.say(text)
        else:
            print(text, file=sys.stderr, flush=True)
