"""What a scan writes of a record: fields by name, matches of regular expressions, and what the user's functions return."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from orjson import OPT_NON_STR_KEYS, JSONEncodeError, dumps

from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.scan.fields import Field, Level, find_field

DEFAULT = "url,time,type,status,mime,offset,length"
_FIND = re.compile(r"(?P<name>[\w.-]+)=(?P<field>[a-z][\w.-]*)~(?P<pattern>.+)", re.S)

Row = dict[str, Any]
UserFunction = Callable[[Any], object]


class CallError(Exception):
    """A function of the user raised, or returned something that cannot be written. The text is the reason."""


class UserStep(NamedTuple):
    """A function of the user and its name. `of_page`: it gets the page, and is not called if there is none."""

    name: str
    function: UserFunction
    of_page: bool


class Extractor:
    """The rows of records."""

    def __init__(self, names: str, finds: Iterable[str], steps: Sequence[UserStep]) -> None:
        """`names` are fields, separated by commas; `finds` are NAME=FIELD~REGEX. Raises ValueError."""
        wanted = [(name, find_field(name)) for name in (text.strip() for text in names.split(",")) if name]
        # The text removes scripts from the tree of a page, so fields that need it are read last.
        order = sorted(wanted, key=lambda pair: (pair[1].level, pair[0] in ("text", "word_count")))
        self._read = [(name, field.read) for name, field in order]
        self._names = [name for name, _ in wanted]
        finds_of = [_parse_find(text) for text in finds]
        self._finds = [(name, field.read, pattern) for name, field, pattern in finds_of]
        self._steps = steps
        levels = [field.level for _, field in wanted] + [field.level for _, field, _ in finds_of]
        self.level = max([*levels, *(Level.PAGE for step in steps if step.of_page)], default=Level.HEADER)

    def row(self, record: FullRecord) -> Row | None:
        """The row of a record; None if a function of the user rejects it. Raises CallError."""
        values = {name: read(record) for name, read in self._read}
        row = {name: _plain(values[name]) for name in self._names}
        for name, read, pattern in self._finds:
            value = read(record)
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            row[name] = pattern.findall(text) if isinstance(text, str) else []
        for step in self._steps:
            if not self._call(step, record, row):
                return None
        return row

    def _call(self, step: UserStep, record: FullRecord, row: Row) -> bool:
        given = record.page if step.of_page else record
        if given is None:
            return True
        try:
            found = step.function(given)
        except Exception as error:  # whatever the user's code raises
            raise CallError(
                f"{step.name} raised {type(error).__name__}: {' '.join(str(error).split())}"
            ) from None
        if found is None or found is True:
            return True
        if found is False:
            return False
        if not isinstance(found, dict):
            raise CallError(
                f"{step.name} returned {type(found).__name__}; expected a dict, None, True or False"
            )
        row.update(found)
        return True


def json_line(row: Row) -> bytes:
    """A row as a line of JSON. Raises CallError if it cannot be one."""
    try:
        return dumps(row, option=OPT_NON_STR_KEYS) + b"\n"
    except JSONEncodeError as error:
        raise CallError(f"the row cannot be written as JSON ({error})") from None


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _parse_find(text: str) -> tuple[str, Field, re.Pattern[str]]:
    found = _FIND.fullmatch(text)
    if found is None:
        raise ValueError(f"invalid {text!r}; expected NAME=FIELD~REGEX, such as price=text~EUR (\\d+)")
    try:
        return found["name"], find_field(found["field"]), re.compile(found["pattern"])
    except re.error as error:
        raise ValueError(f"{text!r}: not a regular expression ({error})") from None
