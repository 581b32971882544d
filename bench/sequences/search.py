"""Do sequences until one is wrong, and make it shorter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bench.sequences.draw import Drawer
from bench.sequences.judge import wrong
from bench.sequences.lab import Done, Lab
from bench.sequences.steps import Run, Step
from bench.sequences.trial import Trial


class Finding(NamedTuple):
    """What is wrong after the last of `steps`, and its `rule`, a key of RULES."""

    rule: str
    what: str
    steps: list[Step]

    @property
    def kind(self) -> str:
        """The rule and the command."""
        return f"{self.rule} {getattr(self.steps[-1], 'kind', '')}"


class Outcome(NamedTuple):
    """The commands that were run, with their ends, and the finding, if there is one."""

    ran: list[tuple[Run, Done]]
    finding: Finding | None


def draw(lab: Lab, seed: int) -> Outcome:
    """Draw the sequence of a number, and do it."""
    trial = Trial(lab)
    return _do(trial, Drawer(seed).steps(trial))


def _do(trial: Trial, steps: Iterable[Step]) -> Outcome:
    """Do steps up to the first that is wrong."""
    outcome: list[tuple[Run, Done]] = []
    for step in steps:
        ran = trial.do(step)
        if ran is None:
            continue
        outcome.append((ran.run, ran.done))
        if found := list(wrong(ran, trial)):
            rule = found[0].split(" ")[0]
            return Outcome(outcome, Finding(rule, "; ".join(found), trial.past.steps))
        trial.note(ran)
    return Outcome(outcome, None)


def shortened(lab: Lab, finding: Finding) -> Finding:
    """Leave out steps, options and inputs while the same is wrong."""
    again = True
    while again:
        again = False
        for steps in _shorter(finding.steps):
            found = _do(Trial(lab), steps).finding
            if found is not None and found.kind == finding.kind:
                finding, again = found, True
                break
    return finding


def _shorter(steps: list[Step]) -> Iterator[list[Step]]:
    for number, step in enumerate(steps):
        before, after = steps[:number], steps[number + 1 :]
        if after:
            yield [*before, *after]
        for simpler in _simpler(step) if isinstance(step, Run) else ():
            yield [*before, simpler, *after]


def _simpler(run: Run) -> Iterator[Run]:
    if run.kill:
        yield run._replace(kill=0)
    for option in run.options:
        yield run._replace(options=tuple(one for one in run.options if one != option))
    for word in run.inputs.split()[:-1] if "*" not in run.inputs else ():
        yield run._replace(inputs=word)
