"""A sequence as it is done: what commands wrote, and what the user did, decides what must hold after the next step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.sequences.lab import KILLED, Done, Files, Lab
from bench.sequences.steps import Change, Run, Step

Captures = Counter[tuple[str, ...]]


@dataclass
class History:
    """What the steps so far did. All are names of files.

    `own`: commands wrote them, and the user did not replace them; `makers` has which commands did. `expected`: commands might have written them. `changed`: the user
    changed them. `left`: a killed command left them; which one, and its output. `copied`: the captures in a copy by directory.
    """

    steps: list[Step] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    makers: dict[str, str] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    left: dict[str, tuple[str, str]] = field(default_factory=dict)
    copied: dict[str, Captures] = field(default_factory=dict)
    last: Done | None = None


class Ran(NamedTuple):
    """A command that ran: the files `before` it, how it ended, and what it does where no output is yet (`fresh`).

    `start` has the files there. `made` are the names that the fresh run wrote, `touched` those that this run changed.
    """

    run: Run
    before: Files
    done: Done
    start: Files
    fresh: Done
    made: set[str]
    touched: set[str]


class Trial:
    """A sequence in a lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.files = lab, lab.reset()
        clusters = {name for name in self.files if name.startswith("cl/")}
        self.past = History(own=clusters, expected={*clusters})

    def outputs(self) -> list[str]:
        """The files that commands wrote and that are still there, without side files."""
        return sorted(name for name in self.past.own if name in self.files and not is_hidden(name))

    def do(self, step: Step) -> Ran | None:
        """Do the next step. Returns what `judge` asks for, if it is a command. Call `note` after that."""
        before, done = self.files, self.lab.do(step)
        self.files = done.files
        touched = {name for name in {*before, *done.files} if before.get(name) != done.files.get(name)}
        self.past.steps.append(step)
        if isinstance(step, Change):
            self.past.changed |= touched
            self.past.last = None
            if step.verb not in ("flip", "cut"):
                self.past.own -= touched
            return None
        start = start_of(step, before, self.past)
        fresh = self.lab.fresh(step, start)
        made = {name for name in fresh.files if fresh.files[name] != start.get(name)}
        self.past.expected |= made
        if step.reads_its_output or step.rules.adds:
            self.past.expected |= {name for name in touched if not is_hidden(name)}
        return Ran(step, before, done, start, fresh, made, touched)

    def note(self, ran: Ran) -> None:
        """Note what a command did, after it was judged."""
        self.past.own |= ran.touched
        self.past.makers |= dict.fromkeys(ran.touched, ran.run.kind)
        self.past.last = None if ran.run.kill else ran.done
        if ran.done.status == KILLED:
            self.past.left |= dict.fromkeys(ran.touched, (ran.run.kind, ran.run.output))


def start_of(run: Run, before: Files, past: History) -> Files:
    """What is there without the outputs of earlier runs, also if the user changed or replaced them."""
    own, below = past.own | past.expected, f"{run.root}/"
    return {name: data for name, data in before.items() if name not in own or not name.startswith(below)}


def is_hidden(name: str) -> bool:
    """Whether a file is a side file, or in a hidden directory."""
    return name.startswith(".") or "/." in name
