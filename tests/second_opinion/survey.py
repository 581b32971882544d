"""Compare cdxmill with both peers, field by field. The tests check the result."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .archives import Archive
from .opinions import PEERS, Opinions, gather
from .ours import Ours, Run, index_all
from .peers import FIELDS, Row
from .rules import rule_for
from .seen import seen_at

COMPARED = tuple(name for name in FIELDS if name != "offset")

DAMAGE = "cdxmill reports damage"
INSIDE = "a peer lost its position and continued inside a record"
NO_OPINION = "both peers crash on the record"


class Difference(NamedTuple):
    """A field in which the three do not all agree.

    `rule` is '' if no rule decides it. It is `explained` if ours is the value that the rule selects.
    """

    offset: int
    field: str
    pywb: str
    cdxj: str
    ours: str
    rule: str
    explained: bool


class Aside(NamedTuple):
    """A record that is not compared, with the reason. `length` is its length by a peer or by cdxmill."""

    offset: int
    length: int
    reason: str


class Verdict(NamedTuple):
    """The result for one archive. `compared` is the number of compared records."""

    differences: list[Difference]
    aside: list[Aside]
    compared: int


class Survey(NamedTuple):
    """The run of cdxmill and the verdicts by archive."""

    run: Run
    verdicts: dict[str, Verdict]


def survey(archives: list[Archive], directory: Path) -> Survey:
    """Index all archives with all three and compare. Everything is written below `folder`."""
    run = index_all(archives, directory)
    (directory / "slices").mkdir()
    opinions = gather(archives, run.answers, directory / "slices")
    comparisons = {
        archive.name: Comparison(archive, run.answers[archive.name], opinions[archive.name])
        for archive in archives
    }
    return Survey(run, {name: comparison.verdict() for name, comparison in comparisons.items()})


class Comparison:
    """The three answers for one archive."""

    def __init__(self, archive: Archive, ours: Ours, opinions: Opinions) -> None:
        self.archive, self.ours, self.opinions = archive, ours, opinions

    def verdict(self) -> Verdict:
        """Compare each record for which at least one of the three has a line, or exclude it."""
        rows = [self.ours.rows, *(opinion.rows for opinion in self.opinions.values())]
        differences, aside, compared = [], [], 0
        for offset in sorted(set().union(*rows)):
            if reason := self._set_aside(offset):
                length = next(int(some[offset]["length"]) for some in rows if offset in some)
                aside.append(Aside(offset, length, reason))
            else:
                differences += self._at(offset)
                compared += 1
        return Verdict(differences, aside, compared)

    def _set_aside(self, offset: int) -> str:
        """Why this offset is not compared; '' if it is."""
        if offset in self.ours.rows:
            unknown = all(offset in opinion.unknown for opinion in self.opinions.values())
            return NO_OPINION if unknown else ""
        stumbling = any(opinion.stumbles for opinion in self.opinions.values())
        if stumbling and self._is_inside_record(offset):
            return INSIDE
        damaged = any(report.covers(offset) for report in self.ours.reports)
        return DAMAGE if damaged else ""

    def _is_inside_record(self, offset: int) -> bool:
        rows = self.ours.rows.items()
        return any(start < offset < start + int(row["length"]) for start, row in rows)

    def _at(self, offset: int) -> list[Difference]:
        pywb, cdxj = self._answers(offset)
        ours = self.ours.rows.get(offset)
        values = [("line", *("yes" if row else "" for row in (pywb, cdxj, ours)))]
        if ours and (pywb or cdxj):
            one, other = pywb or cdxj or {}, cdxj or pywb or {}
            values += [(name, one[name], other[name], ours[name]) for name in COMPARED]
        return [self._judge(offset, *value) for value in values if len(set(value[1:])) > 1]

    def _answers(self, offset: int) -> list[Row | None]:
        """The rows of pywb and cdxj-indexer. If one of them crashes on the record, the other counts for both."""
        known = [self.opinions[peer].rows.get(offset) for peer in PEERS]
        for number, peer in enumerate(PEERS):
            if offset in self.opinions[peer].unknown:
                known[number] = known[1 - number]
        return known

    def _judge(self, offset: int, field: str, pywb: str, cdxj: str, ours: str) -> Difference:
        rule = rule_for(field, seen_at(self.archive.path, offset), pywb, cdxj) if pywb != cdxj else None
        right = None if rule is None else {"pywb": pywb, "cdxj": cdxj}[rule.right]
        return Difference(offset, field, pywb, cdxj, ours, rule.name if rule else "", ours == right)
