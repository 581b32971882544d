"""A condition -> its test on a record.

A list, `FIELD@FILE`, has a value per line, or a value, a TAB and a label.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

from cdxmill.formats.archives.warc_header import Head
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.scan.expressions import Condition
from cdxmill.stages.scan.fields import NO_FIELDS, NOT_TESTED, Field, find_field
from cdxmill.stages.scan.kinds import KINDS, TEXTS, kind_of

Test = Callable[[Any], bool]
ReadLines = Callable[[str], list[bytes]]
"""A path -> the lines of a file."""
Labels = dict[Any, tuple[str, ...]]
"""The values of a list and their labels. One without a label is its own."""
_SEARCHED = ("body", "text", "text_lines", "main_text", "title", "html")
"""Fields of which `@FILE` finds a part. Of all others it compares the whole."""
_DOMAINS = ("domain", "link_domain")
_LONGEST, _MOST = 10_000, 100_000
"""Bytes of a line, and lines, that are searched at once: the library takes no longer ones, and minutes for more."""
_SHOWN = 40
_ENCODED = (b"\ncontent-encoding", b"\ntransfer-encoding")
"""Fields of an HTTP head whose body is not as it was sent. Lower and upper case are the same."""
_ORDER: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


class FieldTest(NamedTuple):
    """The test of a condition: of its field, of a record and, if that is possible, of its type and URL alone.

    `may_hold` is False for the bytes of a record, with its headers, if the condition certainly does not hold. `labels`
    are those of the lines of its list that a record matches.
    """

    field: Field
    holds: Callable[[FullRecord], bool]
    holds_for_head: Callable[[Head], bool] | None = None
    may_hold: Callable[[bytes | bytearray], bool] | None = None
    labels: Callable[[FullRecord], list[str]] | None = None


def make_test(
    condition: Condition, read_lines: ReadLines, fields: Mapping[str, Field] = NO_FIELDS
) -> FieldTest:
    """The test of a condition on one of `fields`, or of those that each record has. Raises ValueError.

    A record without the field does not pass, whatever the operator.
    """
    if condition.field in NOT_TESTED:
        raise ValueError(
            f"{condition.field} cannot be tested{'; use meta.NAME' if condition.field == 'meta' else ''}"
        )
    field = find_field(condition.field, fields)
    read, negated = field.read, condition.negated
    listed = _list_test(condition, read_lines(condition.value)) if condition.operator == "@" else None
    test = _test(condition) if listed is None else listed.holds

    def holds(record: FullRecord) -> bool:
        value = read(record)
        if value is None:
            return False
        return (any(map(test, value)) if isinstance(value, list) else test(value)) is not negated

    def labels(record: FullRecord) -> list[str]:
        assert listed is not None
        value = read(record)
        values = value if isinstance(value, list) else [] if value is None else [value]
        return list(dict.fromkeys(label for one in values for label in listed.labels(one)))

    # A regular expression can take hours, so the record has to be marked before.
    of_head = None if condition.operator == "~" else field.of_head
    return FieldTest(
        field,
        holds,
        of_head and (lambda head: bool(value := of_head(head)) and test(value) is not negated),
        None if listed is None or negated else listed.may_hold,
        listed and labels,
    )


def _test(condition: Condition) -> Test:
    name, operator, kind = condition.field, condition.operator, kind_of(condition.field)
    if operator in _ORDER:
        return _ordered(condition)
    if operator == "=":
        return _value_test(name, kind.whole(condition))
    if kind.part is None:
        raise condition.wrong(f"{name} is a number; expected =, <, <=, > or >=")
    if operator == "~":
        return _matching(condition)
    part, seen = kind.part(condition), kind.seen
    if operator == ":" and kind.flags:
        return lambda found: part in found.lower()
    if operator == ":":
        return lambda found: part in found
    if seen is None:
        return lambda found: found.startswith(part)
    return lambda found: seen(found).startswith(part)


def _matching(condition: Condition) -> Test:
    pattern = condition.value.encode() if condition.field == "body" else condition.value
    try:
        search = re.compile(pattern, kind_of(condition.field).flags).search
    except re.error as error:
        raise condition.wrong(f"not a regular expression ({error})") from None
    return lambda found: search(found) is not None


def _ordered(condition: Condition) -> Test:
    name, read = condition.field, kind_of(condition.field).limit
    if read is None:
        known = ", ".join(field for field, kind in KINDS.items() if kind.limit)
        raise condition.wrong(f"{name} is not a number; {condition.operator} is for {known}")
    compare, limit = _ORDER[condition.operator], read(condition)
    if name == "time":
        size = len(limit)
        return lambda found: compare(found[:size], limit)
    if name == "status":
        return lambda found: found.isdecimal() and compare(int(found), limit)
    return lambda found: compare(found, limit)


def _value_test(field: str, value: Any) -> Callable[[Any], bool]:
    """The test of `FIELD=VALUE`: a domain has the hosts below it, a time those that start with it, `en` also `en-us`."""
    seen = kind_of(field).seen
    if field == "time":
        return lambda found: bool(found.startswith(value))
    if field == "declared_lang":
        region = f"{value}-"
        return lambda found: bool(found == value or found.startswith(region))
    if field in _DOMAINS:
        below = f".{value}"
        return lambda found: bool(found == value or found.endswith(below))
    if seen is not None:
        return lambda found: bool(found == value or seen(found) == value)
    return lambda found: bool(found == value)


class _ListTest(NamedTuple):
    """Whether a value fits a line of a list; the labels of these lines; and `may_hold` of a FieldTest."""

    holds: Callable[[Any], bool]
    labels: Callable[[Any], Iterable[str]]
    may_hold: Callable[[bytes | bytearray], bool] | None = None


def _list_test(condition: Condition, lines: list[bytes]) -> _ListTest:
    """The test of `FIELD@FILE`. Raises ValueError for a list without lines, or with a value that cannot match."""
    field, known = condition.field, _read_list(condition, lines)
    if field in _SEARCHED:
        _check_literals(list(known), condition)
        literals = LiteralTest(list(known), is_text=field != "body")
        return _ListTest(
            literals, _labelled(literals.found, known), literals.may_hold if field == "body" else None
        )
    entries = _entries_of(field, known)
    return _ListTest(_holds(field, known) or (lambda found: bool(entries(found))), _labelled(entries, known))


def _holds(field: str, known: Labels) -> Test | None:
    """Whether a value fits a list, if that is quicker to say than what it fits."""
    if field in _DOMAINS:
        return lambda host: _is_below(host, known)
    is_whole = field not in ("time", "surt", "declared_lang") and kind_of(field).seen is None
    return known.__contains__ if is_whole else None


def _is_below(host: str, known: Labels) -> bool:
    while host:
        if host in known:
            return True
        host = host.partition(".")[2]
    return False


def _labelled(entries: Callable[[Any], Iterable[Any]], known: Labels) -> Callable[[Any], list[str]]:
    """The labels of the lines that a value fits."""

    def labels(found: Any) -> list[str]:
        return [label for entry in entries(found) for label in known[entry] or (_shown(entry),)]

    return labels


def _shown(entry: Any) -> str:
    return entry.decode("utf-8", "replace") if isinstance(entry, bytes) else str(entry)


def _read_list(condition: Condition, lines: list[bytes]) -> Labels:
    """The values of a list and their labels, in the order of the file. Blank lines are skipped. Raises ValueError."""
    known: Labels = {}
    read = _line_reader(condition)
    for number, line in enumerate(lines, 1):
        value, _, label = line.partition(b"\t")
        if not value or value.isspace():
            continue
        try:
            key = read(value, condition.text)
        except ValueError:  # again, with the place in the message
            read(value, f"{condition.text}, line {number}, {value[:_SHOWN].decode('utf-8', 'replace')!r}")
            raise
        labels = known.setdefault(key, ())
        if label and (text := label.strip().decode("utf-8", "replace")) not in labels:
            known[key] = (*labels, text)
    if not known:
        raise condition.wrong("the file has no lines")
    return known


def _line_reader(condition: Condition) -> Callable[[bytes, str], Any]:
    """The value of a line, as that of a condition with this text is read."""
    field, operator = condition.field, condition.operator
    if field == "body":
        return lambda line, _: line
    kind = kind_of(field)
    whole, is_text, is_searched = kind.whole, kind in TEXTS, field in _SEARCHED

    def read(line: bytes, shown: str) -> Any:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            raise condition._replace(text=shown).wrong("is not UTF-8") from None
        value = whole(Condition(field, operator, text if is_text else text.strip(), shown))
        return value.encode() if is_searched else value

    return read


def _entries_of(field: str, known: Labels) -> Callable[[Any], list[Any]]:
    """What a value of a record fits of a list: of times and keys, what it starts with."""
    if field in ("time", "surt"):
        sizes = sorted({len(start) for start in known})
        return lambda found: [start for size in sizes if (start := found[:size].lower()) in known]
    if field in _DOMAINS:
        return lambda found: [domain for domain in _domains_above(found) if domain in known]
    if field == "declared_lang":
        return lambda found: [tag for tag in _languages_of(found) if tag in known]
    seen = kind_of(field).seen or (lambda found: found)
    return lambda found: [value] if (value := seen(found)) in known else []


def _languages_of(tag: str) -> Iterator[str]:
    """A language tag, and those that it belongs to: en-us, en."""
    while tag:
        yield tag
        tag = tag.rpartition("-")[0]


def _domains_above(host: str) -> Iterator[str]:
    """A host, and the domains that it is in."""
    while host:
        yield host
        host = host.partition(".")[2]


def _check_literals(lines: list[bytes], condition: Condition) -> None:
    """Raises ValueError for lines that cannot be searched at once. The library would take a NUL for the end of a line."""
    if len(lines) > _MOST:
        raise ValueError(
            f"{condition.text!r}: the file has {len(lines)} lines; at most {_MOST} can be searched; split it"
        )
    for line in lines:
        if b"\0" in line or len(line) > _LONGEST:
            reason = "a NUL byte" if b"\0" in line else f"{len(line)} bytes, more than {_LONGEST}"
            raise ValueError(
                f"{condition.text!r}: the line {line[:30]!r} has {reason}, and cannot be searched"
            )


class LiteralTest:
    """Whether one of some texts occurs. They are searched all at once.

    The library is Hyperscan: 9 microseconds for 1,000 literals in a page of 24 kB, ahocorasick_rs needs 54.
    """

    def __init__(self, literals: list[bytes], *, is_text: bool) -> None:
        import hyperscan

        unique = self._literals = sorted(set(literals))
        count, single = len(unique), hyperscan.HS_FLAG_SINGLEMATCH
        flags = [single] * count + [single | hyperscan.HS_FLAG_CASELESS] * len(_ENCODED)
        database = hyperscan.Database()
        database.compile(expressions=[*unique, *_ENCODED], elements=len(flags), flags=flags, literal=True)
        self._scan, self._ended, self._is_text = database.scan, hyperscan.ScanTerminated, is_text
        self._stop = lambda number, *_: number < count

    def __call__(self, value: Any) -> bool:
        """Whether one occurs in a text, or in bytes."""
        return self._finds(value.encode() if self._is_text else value, self._stop)

    def found(self, value: Any) -> list[bytes]:
        """All that occur."""
        numbers: set[int] = set()
        self._scan(
            value.encode() if self._is_text else value,
            match_event_handler=lambda number, *_: numbers.add(number),
        )
        return [self._literals[number] for number in sorted(numbers) if number < len(self._literals)]

    def may_hold(self, data: bytes | bytearray) -> bool:
        """False if none occurs in the body of a record with these bytes: none is in them, and they are not encoded."""
        return self._finds(data, lambda *_: True)

    def _finds(self, data: Any, stop: Callable[..., bool]) -> bool:
        try:
            self._scan(data, match_event_handler=stop)
        except self._ended:
            return True
        return False
