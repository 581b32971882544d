"""Progress of long work: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from cdxmill.messages import Step, count, human_bytes, human_seconds, printable, say
from cdxmill.running.processes import bytes_done

LOG_SECONDS = 30.0
WITH_EACH_TICK: list[Callable[[], None]] = []
"""A run that holds a directory at a URL renews its lock here."""


Listener = Callable[[Step], object]


class _Listening:
    """The function that a user of the API gave to learn of the progress."""

    function: ClassVar[Listener | None] = None


class _ListenerFailed(BaseException):
    """What that function raised. It ends the run: code that reports an Exception as a bad record does not catch it."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@contextmanager
def listened_to(function: Listener | None) -> Iterator[None]:
    """Call `function` with each step that is shown meanwhile. What it raises is raised here."""
    before, _Listening.function = _Listening.function, function
    try:
        yield
    except _ListenerFailed as failed:
        raise failed.error from None
    finally:
        _Listening.function = before


class Progress:
    """Progress of one step: items done, rate, time left and failures. Use it as a context manager.

    `total_bytes` is what the step will read. If it is 0, because unknown, items are counted instead.
    """

    def __init__(self, title: str, items: int, total_bytes: int = 0, quiet: bool = False) -> None:
        self._title, self._items, self._total = title, items, total_bytes
        self._quiet = quiet
        self._terminal = sys.stderr is not None and sys.stderr.isatty() and not quiet
        self._start = self._shown = time.monotonic()
        self._bar: _Bar | None = None
        self.done = 0
        self.more = ""
        """What else the line says."""
        self.at_work: Sequence[str] = ()
        """What each process does: lines below the bar, or one more line in a log."""
        self.failures = 0

    def __enter__(self) -> Progress:
        if self._terminal:
            self._bar = _Bar(self._title)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
        if kind is None:
            self._tell()

    def _tell(self) -> None:
        """Call the function that wants to know."""
        if _Listening.function is None:
            return
        step = Step(self._title, self.done, self._items, bytes_done(), self._total, self.failures)
        try:
            _Listening.function(step)
        except Exception as error:
            raise _ListenerFailed(error) from None

    def advance(self) -> None:
        """Count one more item as done."""
        self.done += 1

    def tick(self) -> None:
        """Show the progress, if it is time to, and do what is in WITH_EACH_TICK."""
        for do in WITH_EACH_TICK:
            do()
        self._tell()
        if self._bar is not None:
            self._bar.show(self._share(), self.line(), [printable(text) for text in self.at_work])
        elif not self._quiet and time.monotonic() - self._shown >= LOG_SECONDS:
            self._shown = time.monotonic()
            say(self.line())
            if self.at_work:
                say(f"{self._title}: at work: {'; '.join(self.at_work)}")

    def say(self, text: str) -> None:
        """Print a line on stderr without disturbing the bar."""
        if self._bar is not None:
            self._bar.say(printable(text))
        else:
            say(text)

    def line(self) -> str:
        """`title: 3/10, 1.2 GiB of 4.0 GiB, 90 MiB/s, 31 s left, 1 failure`."""
        spent = time.monotonic() - self._start
        parts = [f"{self.done}/{self._items}"]
        if self._total:
            read = min(bytes_done(), self._total)
            parts.append(f"{human_bytes(read)} of {human_bytes(self._total)}")
            parts.append(f"{human_bytes(read / max(spent, 1e-6))}/s")
        elif read := bytes_done():
            parts += [human_bytes(read), f"{human_bytes(read / max(spent, 1e-6))}/s"]
        share = self._share()
        if 0 < share < 1:
            parts.append(f"{human_seconds(spent / share - spent)} left")
        if self.more:
            parts.append(self.more)
        if self.failures:
            parts.append(count(self.failures, "failure"))
        return f"{self._title}: " + ", ".join(parts)

    def _share(self) -> float:
        if self._total:
            return min(bytes_done() / self._total, 1.0)
        return self.done / self._items if self._items else 1.0


class _Bar:
    """rich's bar without its thread, because workers are forked while it is shown."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress
        from rich.text import Text

        class _Shown(RichProgress):
            below: Sequence[str] = ()

            def get_renderables(self) -> Iterable[Any]:
                yield from super().get_renderables()
                yield from (Text(line, no_wrap=True, overflow="ellipsis") for line in self.below)

        console = Console(stderr=True)
        columns = (BarColumn(bar_width=30), TextColumn("{task.description}"))
        self._rich = _Shown(*columns, console=console, auto_refresh=False, transient=True)
        self._rich.start()
        self._task = self._rich.add_task(title, total=1.0)

    def show(self, share: float, text: str, below: Sequence[str]) -> None:
        self._rich.below = below
        self._rich.update(self._task, completed=share, description=text.replace("[", "\\["), refresh=True)

    def say(self, text: str) -> None:
        self._rich.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self._rich.stop()
