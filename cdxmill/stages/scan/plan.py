"""Conditions in the order in which they cost least: what the record header decides first, the language last.

Within a level the order is that of measured cost / (1 - pass rate). The first records, and then one of SAMPLED, are
measured. The first condition of a level costs what has to be computed for all of them, too, such as the tree of a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import NamedTuple

from cdxmill.formats.archives.warc_header import Head
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.scan.columns import Type
from cdxmill.stages.scan.conditions import FieldTest, ReadLines, make_test
from cdxmill.stages.scan.expressions import Condition, Every, Node, Not, parse_expression
from cdxmill.stages.scan.fields import NO_FIELDS, Field, Level

Passes = Callable[[FullRecord], bool]

Refuses = Callable[[Head], bool]

MakeTest = Callable[[Condition], FieldTest]

SAMPLED = 32
_AT_FIRST = 256
"""Records at the start that are all measured."""
_REORDERED = 2048
"""Records after which the conditions are sorted again."""


class Measured(NamedTuple):
    """What was measured of a condition: how often it was tested, how often it held, and seconds."""

    text: str
    level: int
    tested: int = 0
    held: int = 0
    seconds: float = 0.0

    def rank(self) -> tuple[int, float]:
        """What conditions are sorted by: the level, and cost / (1 - pass rate)."""
        return self.level, self.seconds / max(self.tested - self.held, 1e-6)

    def __str__(self) -> str:
        if not self.tested:
            return f"{self.text} ({Level(self.level).name.lower()}): not measured"
        cost, rate = 1e6 * self.seconds / self.tested, 100 * self.held / self.tested
        level = Level(self.level).name.lower()
        return f"{self.text} ({level}): {cost:.1f} microseconds, {rate:.1f} % pass, {self.tested} measured"


def added(lists: Iterable[Sequence[Measured]]) -> list[Measured]:
    """The sums over several processes, in the order of the first list."""
    sums: dict[tuple[str, int], Measured] = {}
    for one in lists:
        for new in one:
            old = sums.setdefault(new[:2], Measured(*new[:2]))
            sums[new[:2]] = new._replace(
                tested=old.tested + new.tested, held=old.held + new.held, seconds=old.seconds + new.seconds
            )
    return list(sums.values())


class _Leaf:
    """A condition. `wanted` is False below a `not`."""

    def __init__(self, condition: Condition, wanted: bool, make: MakeTest) -> None:
        field, holds, of_head, may_hold, self.labels = make(condition)
        self.field = condition.field
        self.is_pattern = condition.operator == "~"
        self.refuses: Refuses | None = None
        self.may_hold = may_hold if wanted else None
        if of_head is not None:
            self.refuses = (lambda head: not of_head(head)) if wanted else of_head
        self.level = int(field.level)
        self.passes: Passes = holds if wanted else lambda record: not holds(record)
        text = condition.text if wanted else f"not {condition.text}"
        self._measured = Measured(text, self.level)

    def measure(self, record: FullRecord) -> bool:
        start = perf_counter()
        found = self.passes(record)
        seconds = perf_counter() - start
        text, level, tested, held, before = self._measured
        self._measured = Measured(text, level, tested + 1, held + found, before + seconds)
        return found

    def cost(self) -> float:
        return self._measured.seconds / self._measured.tested if self._measured.tested else 0.0

    def rate(self) -> float:
        return self._measured.held / self._measured.tested if self._measured.tested else 0.5

    def reorder(self) -> None:
        """A single condition has no order."""

    def measured(self) -> Measured:
        return self._measured

    def leaves(self) -> list[_Leaf]:
        return [self]


class _Conditions:
    """Parts of which all have to hold, or one of them."""

    def __init__(self, parts: Sequence[_Part], is_every: bool) -> None:
        self.parts, self._is_every = list(parts), is_every
        self.level: int = max((part.level for part in parts), default=0)
        self.reorder()

    def reorder(self) -> None:
        for part in self.parts:
            part.reorder()
        self.parts.sort(key=lambda part: (part.level, self._rank(part)))
        self._tests = [part.passes for part in self.parts]
        before = (part for part in self.parts if not (isinstance(part, _Leaf) and part.refuses))
        first = next(before, None)
        self.may_hold = first.may_hold if isinstance(first, _Leaf) else None
        self.refusals = [
            part.refuses for part in self.parts if isinstance(part, _Leaf) and part.refuses is not None
        ]

    def _rank(self, part: _Part) -> float:
        ending = 1 - part.rate() if self._is_every else part.rate()
        return part.cost() / max(ending, 1e-6)

    def passes(self, record: FullRecord) -> bool:
        is_every = self._is_every
        for test in self._tests:
            if test(record) is not is_every:
                return not is_every
        return is_every

    def refuses(self, head: Head) -> bool:
        """Whether a part that needs no more than the type and the URL does not hold. Requires: all parts have to."""
        for refuses in self.refusals:  # noqa: SIM110 - a generator takes longer
            if refuses(head):
                return True
        return False

    def measure(self, record: FullRecord) -> bool:
        for part in self.parts:
            if part.measure(record) is not self._is_every:
                return not self._is_every
        return self._is_every

    def cost(self) -> float:
        reached, total = 1.0, 0.0
        for part in self.parts:
            total += reached * part.cost()
            reached *= part.rate() if self._is_every else 1 - part.rate()
        return total

    def rate(self) -> float:
        all_go_on = 1.0
        for part in self.parts:
            all_go_on *= part.rate() if self._is_every else 1 - part.rate()
        return all_go_on if self._is_every else 1 - all_go_on

    def leaves(self) -> list[_Leaf]:
        return [leaf for part in self.parts for leaf in part.leaves()]


_Part = _Leaf | _Conditions


class Plan:
    """The conditions of a scan, all of which must hold."""

    def __init__(
        self, expressions: Iterable[str], read_lines: ReadLines, fields: Mapping[str, Field] = NO_FIELDS
    ) -> None:
        """`fields` are more than those that each record has.

        Raises ValueError if an expression is invalid, and what `read_lines` raises.
        """
        nodes = tuple(parse_expression(text) for text in expressions)
        make = partial(make_test, read_lines=read_lines, fields=fields)
        self._group = _Conditions([_part(node, True, make) for node in _flat(nodes)], True)
        self._seen = 0

    def passes(self, record: FullRecord) -> bool:
        """Whether a record passes. Some records are measured, and the order improves."""
        seen = self._seen = self._seen + 1
        if seen % SAMPLED and seen > _AT_FIRST:
            return self._group.passes(record)
        found = self._group.measure(record)
        if seen == _AT_FIRST or not seen % _REORDERED:
            self._group.reorder()
        return found

    def refuses(self, head: Head) -> bool:
        """Whether a record of this type and URL certainly does not pass. If not, `passes` has to be asked."""
        seen = self._seen + 1
        if seen % SAMPLED and seen > _AT_FIRST and self._group.refuses(head):
            self._seen = seen
            return True
        return False

    def refuses_content(self, data: bytes | bytearray) -> bool:
        """Whether a record with these bytes certainly does not pass."""
        seen, may_hold = self._seen + 1, self._group.may_hold
        if may_hold is not None and seen % SAMPLED and seen > _AT_FIRST and not may_hold(data):
            self._seen = seen
            return True
        return False

    @property
    def can_refuse(self) -> bool:
        """Whether `refuses` is ever true."""
        return bool(self._group.refusals)

    @property
    def can_refuse_content(self) -> bool:
        """Whether `refuses_content` is ever true."""
        return self._group.may_hold is not None

    @property
    def level(self) -> Level:
        """The most expensive level that any condition needs."""
        return Level(self._group.level)

    @property
    def needs_watch(self) -> bool:
        """Whether a record may take any time: a body is read, or a regular expression of the user is tested."""
        return self.level > Level.HTTP or any(leaf.is_pattern for leaf in self._group.leaves())

    def measured(self) -> list[Measured]:
        """What was measured so far, in the order in which the conditions are tested."""
        return [leaf.measured() for leaf in self._group.leaves()]

    def matched(self) -> dict[str, Field]:
        """The fields `match.FIELD`: the labels of what a record matches of the lists for this field."""
        lists: dict[str, list[_Leaf]] = {}
        for leaf in self._group.leaves():
            if leaf.labels is not None:
                lists.setdefault(f"match.{leaf.field}", []).append(leaf)
        return {name: _match_field(leaves) for name, leaves in lists.items()}


def _match_field(leaves: Sequence[_Leaf]) -> Field:
    tests = [leaf.labels for leaf in leaves if leaf.labels is not None]

    def read(record: FullRecord) -> list[str]:
        return list(dict.fromkeys(label for test in tests for label in test(record)))

    return Field(Level(leaves[0].level), read, type=Type.LIST)


def _flat(nodes: tuple[Node, ...]) -> list[Node]:
    return [part for node in nodes for part in (_flat(node.nodes) if isinstance(node, Every) else [node])]


def _part(node: Node, wanted: bool, make: MakeTest) -> _Part:
    """The part for a node, or for its opposite."""
    if isinstance(node, Not):
        return _part(node.node, not wanted, make)
    if isinstance(node, Condition):
        return _Leaf(node, wanted, make)
    parts = [_part(one, wanted, make) for one in node.nodes]
    return _Conditions(parts, isinstance(node, Every) is wanted)
