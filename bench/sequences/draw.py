"""Sequences drawn at random: from one number, always the same one."""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.sequences.commands import EXISTING, KINDS
from bench.sequences.steps import Change, Run, Step
from bench.sequences.trial import Trial

_NAMES = (
    *("one.cdx.gz", "one.warc.zst", "one.warc.zst.cdx.gz", "one.warc.jsonl.gz", "failures.tsv", "copy-failures.tsv"),
    *("cluster.loc", "cluster.json", "cdx-00000.gz", "out-00000.tsv", "x.tree.archives.gz", "s.seq", "d.json"),
    *("a.cdxj", "mine.txt", "c/mine.txt"),
)  # fmt: skip
"""Names in `out` of files that the user has there."""
_SIDE_FILES = (".outputs.tsv", ".finished.json", "c/.finished.json", "failures.tsv")
_INPUTS = ("in", "more", "cdx", "moved", "cl")
_SPARE = tuple(f"spare/{name}.warc.gz" for name in ("a", "b", "c", "cut"))


class Drawer:
    """The steps of a number: two or three commands, and what a user does between them."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def steps(self, trial: Trial) -> Iterator[Step]:
        """Draw the next step when it is asked for. It depends on the files in the trial."""
        rng, last = self._rng, None
        if rng.random() < 0.3:
            yield Change("write", f"out/{rng.choice(_NAMES)}", rng.choice(("precious", "a b c")))
        count = rng.choice((2, 2, 3))
        for number in range(count):
            if number and rng.random() < 0.55:
                yield from self._change(trial)
            last = self._run(last, is_last=number == count - 1)
            yield last

    def _run(self, last: Run | None, is_last: bool) -> Run:
        rng = self._rng
        if last is not None and rng.random() < 0.75:
            run = self._like(last)
        else:
            kinds = [*KINDS]
            run = self._any(rng.choices(kinds, [KINDS[kind].weight for kind in kinds])[0])
        return run._replace(kill=rng.randint(1, 25)) if not is_last and rng.random() < 0.15 else run

    def _any(self, kind: str) -> Run:
        choice, rules = self._rng.choice, KINDS[kind]
        options = tuple(filter(None, map(choice, rules.options)))
        return Run(kind, options, choice(rules.inputs), choice(rules.outputs))

    def _like(self, last: Run) -> Run:
        """A command of the same kind. Some of its words are those of the last one."""
        rng, run = self._rng, self._any(last.kind)
        if rng.random() < 0.6:
            run = run._replace(output=last.output)
        if rng.random() < 0.6:
            run = run._replace(inputs=last.inputs)
        if rng.random() < 0.5:  # the same but for what happens to outputs that exist
            existing = tuple(one for one in run.options if one in EXISTING)
            run = run._replace(options=(*existing, *(one for one in last.options if one not in EXISTING)))
        return run

    def _change(self, trial: Trial) -> Iterator[Change]:
        own = trial.outputs()
        if own and self._rng.random() < 0.5:
            yield self._change_of_output(self._rng.choice(own), own)
        else:
            names = (name for name in trial.files if not name.endswith("/") and "/." not in name)
            yield from self._change_of_inputs(sorted(name for name in names if name.split("/")[0] in _INPUTS))

    def _change_of_output(self, name: str, own: list[str]) -> Change:
        rng = self._rng
        changes = [
            *2 * [Change("flip", name, f"{rng.random():.3f}")],
            Change("cut", name, f"{rng.random():.3f}"),
            Change("remove", name),
            Change("move", name, rng.choice((*own, f"{name}.old"))),
            Change("copy", name, rng.choice(own)),
            Change("write", name, "precious"),
            Change("move", name.split("/")[0], "away"),
            Change("remove", f"{name.split('/')[0]}/{rng.choice(_SIDE_FILES)}"),
        ]
        return rng.choice(changes)

    def _change_of_inputs(self, names: list[str]) -> list[Change]:
        rng, name = self._rng, self._rng.choice(names)
        archives = [one for one in names if one.startswith(("in/", "more/"))]
        archive, spare = rng.choice(archives or ["in/one.warc.gz"]), rng.choice(_SPARE)
        swapped = [
            ("in/one.warc.gz", "in/t"),
            ("in/two.warc.gz", "in/one.warc.gz"),
            ("in/t", "in/two.warc.gz"),
        ]
        return rng.choice(
            [
                [Change("copy", archive, spare)],
                [Change("copy", "in/one.warc.gz", spare)],
                [Change("copy with time", archive, spare)],
                [Change("copy", "in/new.warc.gz", spare)],
                [Change("copy", "in/one.warc", "spare/plain.warc")],
                [Change("copy", "cdx/c.cdxj", "spare/c.cdxj")],
                [Change("copy", "cdx/c.cdxj.gz", "spare/cut.cdxj.gz")],
                [Change("remove", name)],
                [Change("move", archive, "in/three.warc.gz")],
                [Change("move", *pair) for pair in swapped],
                [Change("write", name, "precious")],
                [Change("cut", name, f"{rng.random():.3f}")],
            ]
        )
