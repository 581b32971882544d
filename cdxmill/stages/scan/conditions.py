r"""The text of --where -> a tree of conditions such as `status=200`, and the test of each on a record.

EXPRESSION  a condition, or several with `and`, `or`, `not` and parentheses
condition   FIELD OPERATOR VALUE, with spaces around the operator or without: status=200, url ~ \.pdf$, title:"annual report"

=   equals            !=  does not equal
:   contains          !:  does not contain
~   matches (regex)   !~  does not match
^=  starts with
@   a line of the file VALUE fits     !@  no line fits
<  <=  >  >=
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

from cdxmill.formats.archives.warc_header import Head
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.scan.fields import Field, find_field

_FIELD = r"\s*(?P<field>[a-z][a-z_]*(?:\.[^\s=!:~^@<>()]+)?)"
_OPERATOR = r"(?:!=|!:|!~|!@|\^=|<=|>=|[=:~@<>])"
_TERM = re.compile(rf"{_FIELD}(?:(?P<operator>{_OPERATOR})|\s+(?P<apart>{_OPERATOR})\s+)", re.I)
_WORD = re.compile(r"\s*(and|or|not)(?=[\s(]|$)", re.I)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_DEEPEST = 50
Test = Callable[[Any], bool]
ReadLines = Callable[[str], list[bytes]]
"""A path -> the lines of a file."""
_NUMBERS = ("length", "size", "offset", "link_count", "word_count", "confidence")
_ORDERED = (*_NUMBERS, "status")
_SEARCHED = ("body", "text", "title", "html")
"""Fields of which `@FILE` finds a part. Of all others it compares the whole."""
_DOMAINS = ("domain", "link_domain")
_LONGEST, _MOST = 10_000, 100_000
"""Bytes of a line, and lines, that are searched at once: the library takes no longer ones, and minutes for more."""
_ENCODED = (b"\ncontent-encoding", b"\ntransfer-encoding")
"""Fields of an HTTP head whose body is not as it was sent. Lower and upper case are the same."""
_NOT_TESTED = ("meta", "jsonld", "tags")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


class Condition(NamedTuple):
    """FIELD OPERATOR VALUE, without negation. `text` is what the user wrote."""

    field: str
    operator: str
    value: str
    text: str


class Not(NamedTuple):
    """The opposite."""

    node: Node


class Every(NamedTuple):
    """All of the nodes."""

    nodes: tuple[Node, ...]


class Some(NamedTuple):
    """At least one of the nodes."""

    nodes: tuple[Node, ...]


Node = Condition | Not | Every | Some


def parse_expression(text: str) -> Node:
    """The tree. Raises ValueError.

    >>> node = parse_expression("status=200 and not (url:shop or title~'a b')")
    >>> [type(part).__name__ for part in node.nodes]
    ['Condition', 'Not']
    """
    parser = _Parser(text)
    node = parser.some(0)
    if parser.rest():
        raise parser.error("unexpected text")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def rest(self) -> str:
        return self._text[self._at :].strip()

    def error(self, reason: str) -> ValueError:
        where = f" at {self.rest()[:30]!r}" if self.rest() else " at its end"
        return ValueError(
            f"invalid expression {self._text!r}: {reason}{where}; expected e.g. status=200 and url:shop"
        )

    def some(self, depth: int) -> Node:
        nodes = [self._every(depth)]
        while self._take("or"):
            nodes.append(self._every(depth))
        return nodes[0] if len(nodes) == 1 else Some(tuple(nodes))

    def _every(self, depth: int) -> Node:
        nodes = [self._one(depth)]
        while self._take("and"):
            nodes.append(self._one(depth))
        return nodes[0] if len(nodes) == 1 else Every(tuple(nodes))

    def _one(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.error("too many parentheses")
        if self._take("not"):
            return Not(self._one(depth + 1))
        if self._take_sign("("):
            node = self.some(depth + 1)
            if not self._take_sign(")"):
                raise self.error("a ) is missing")
            return node
        return self._condition()

    def _take(self, word: str) -> bool:
        found = _WORD.match(self._text, self._at)
        if found is None or found[1].lower() != word:
            return False
        self._at = found.end()
        return True

    def _take_sign(self, sign: str) -> bool:
        rest = self._text[self._at :].lstrip()
        if not rest.startswith(sign):
            return False
        self._at = len(self._text) - len(rest) + 1
        return True

    def _condition(self) -> Node:
        found = _TERM.match(self._text, self._at)
        if found is None:
            raise self.error("expected FIELD=VALUE")
        start = self._at + len(found[0]) - len(found[0].lstrip())
        self._at = found.end()
        value = self._value()
        sign = found["operator"] or found["apart"]
        text = self._text[start : self._at]
        condition = Condition(found["field"], sign.removeprefix("!"), value, text)
        return Not(condition) if sign.startswith("!") else condition

    def _value(self) -> str:
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is not None:
            self._at = quoted.end()
            return str(quoted[1] if quoted[1] is not None else quoted[2])
        depth, start = 0, self._at
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign.isspace():
                break
            if sign == ")" and not depth:
                if self._text[self._at + 1 : self._at + 2] != "/":
                    break
                depth += 1  # the ) of a SURT prefix: com,example)/
            if sign == "\\":
                self._at += 1
            depth += (sign == "(") - (sign == ")")
            self._at += 1
        self._at = min(self._at, len(self._text))
        if self._at == start:
            raise self.error("a value is missing")
        return self._text[start : self._at]


class FieldTest(NamedTuple):
    """The test of a condition: of its field, of a record and, if that is possible, of its type and URL alone.

    `may_hold` is False for the bytes of a record, with its headers, if the condition certainly does not hold.
    """

    field: Field
    holds: Callable[[FullRecord], bool]
    holds_for_head: Callable[[Head], bool] | None = None
    may_hold: Callable[[bytes | bytearray], bool] | None = None


def make_test(condition: Condition, read_lines: ReadLines) -> FieldTest:
    """The test of a condition. A record without the field does not pass. Raises ValueError."""
    field = find_field(condition.field)
    if condition.field in _NOT_TESTED:
        raise ValueError(
            f"{condition.field} cannot be tested{'; use meta.NAME' if condition.field == 'meta' else ''}"
        )
    try:
        test = _test(condition, read_lines)
    except re.error as error:
        raise ValueError(f"{condition.text!r}: not a regular expression ({error})") from None
    read = field.read

    def holds(record: FullRecord) -> bool:
        value = read(record)
        if value is None:
            return False
        return any(map(test, value)) if isinstance(value, list) else test(value)

    if condition.field == "body" and isinstance(test, LiteralTest):
        return FieldTest(field, holds, may_hold=test.may_hold)
    # A regular expression can take hours, so the record has to be marked before.
    of_head = None if condition.operator == "~" else field.of_head
    if of_head is None:
        return FieldTest(field, holds)
    return FieldTest(field, holds, lambda head: test(of_head(head)))


def _test(condition: Condition, read_lines: ReadLines) -> Test:
    name, operator, text = condition.field, condition.operator, condition.value
    if operator == "@":
        return _in_lines(name, [line for line in read_lines(text) if line], condition)
    if operator in _ORDER:
        return _ordered(name, operator, text)
    if name in _DOMAINS and operator == "=":
        return _in_domains({text.lower().encode()})
    value: Any = text.encode() if name == "body" else text
    if operator == "=":
        return _equals(name, value)
    if name in _NUMBERS:
        raise ValueError(f"{condition.text!r}: {name} is a number; expected =, <, <=, > or >=")
    if operator == ":":
        return lambda found: value in found
    if operator == "^=":
        return lambda found: found.startswith(value)
    search = re.compile(value).search
    return lambda found: search(found) is not None


def _equals(name: str, value: Any) -> Test:
    if name == "time":
        return lambda found: found[: len(value)] == value
    if name in _NUMBERS:
        number = _number(name, value)
        return lambda found: bool(found == number)
    return lambda found: bool(found == value)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}: {text!r} is not a number") from None


def _ordered(name: str, operator: str, text: str) -> Test:
    compare = _ORDER[operator]
    if name == "time":
        if not (text.isdecimal() and len(text) <= 14):
            raise ValueError(f"time: {text!r} is not a timestamp; expected 1 to 14 digits, such as 2014")
        return lambda found: found != "" and compare(found[: len(text)], text)
    if name not in _ORDERED:
        raise ValueError(f"{name} is not a number; {operator} is for {', '.join(_ORDERED)} and time")
    limit = _number(name, text)
    if name == "status":
        return lambda found: found.isdecimal() and compare(int(found), limit)
    return lambda found: compare(found, limit)


def _in_lines(name: str, lines: list[bytes], condition: Condition) -> Test:
    if not lines:
        raise ValueError(f"{condition.text!r}: the file has no lines")
    if name in _NUMBERS:
        raise ValueError(f"{condition.text!r}: {name} is a number, which cannot be searched in a list")
    if name in _SEARCHED:
        _check_literals(lines, condition)
        return LiteralTest(lines, is_text=name != "body")
    if name in _DOMAINS:
        return _in_domains({line.lower() for line in lines})
    if name == "surt":
        return _has_prefix(lines)
    known = {line.decode("utf-8", "replace") for line in lines}
    if name in ("host", "link_host"):
        known = {host.lower() for host in known}
    return lambda found: found in known


def _check_literals(lines: list[bytes], condition: Condition) -> None:
    """Raises ValueError for lines that cannot be searched at once. The library would take a NUL for the end of a line."""
    if len(lines) > _MOST:
        raise ValueError(
            f"{condition.text!r}: the file has {len(lines)} lines; at most {_MOST} can be searched"
        )
    for line in lines:
        if b"\0" in line or len(line) > _LONGEST:
            reason = "a NUL byte" if b"\0" in line else f"{len(line)} bytes, more than {_LONGEST}"
            raise ValueError(
                f"{condition.text!r}: the line {line[:30]!r} has {reason}, and cannot be searched"
            )


def _in_domains(domains: set[bytes]) -> Test:
    """Whether a host is one of `domains`, or below one."""
    known = {domain.decode("utf-8", "replace").strip(".") for domain in domains}

    def test(host: str) -> bool:
        while host:
            if host in known:
                return True
            host = host.partition(".")[2]
        return False

    return test


def _has_prefix(prefixes: Iterable[bytes]) -> Test:
    known = {prefix.decode("utf-8", "replace") for prefix in prefixes}
    sizes = sorted({len(prefix) for prefix in known})
    return lambda key: any(key[:size] in known for size in sizes)


class LiteralTest:
    """Whether one of some texts occurs. They are searched all at once.

    The library is Hyperscan: 9 microseconds for 1,000 literals in a page of 24 kB, ahocorasick_rs needs 54.
    """

    def __init__(self, literals: list[bytes], *, is_text: bool) -> None:
        import hyperscan

        unique = sorted(set(literals))
        count, single = len(unique), hyperscan.HS_FLAG_SINGLEMATCH
        flags = [single] * count + [single | hyperscan.HS_FLAG_CASELESS] * len(_ENCODED)
        database = hyperscan.Database()
        database.compile(expressions=[*unique, *_ENCODED], elements=len(flags), flags=flags, literal=True)
        self._scan, self._ended, self._is_text = database.scan, hyperscan.ScanTerminated, is_text
        self._stop = lambda number, *_: number < count

    def __call__(self, value: Any) -> bool:
        """Whether one occurs in a text, or in bytes."""
        return self._finds(value.encode() if self._is_text else value, self._stop)

    def may_hold(self, data: bytes | bytearray) -> bool:
        """False if none occurs in the body of a record with these bytes: none is in them, and they are not encoded."""
        return self._finds(data, lambda *_: True)

    def _finds(self, data: Any, stop: Callable[..., bool]) -> bool:
        try:
            self._scan(data, match_event_handler=stop)
        except self._ended:
            return True
        return False
