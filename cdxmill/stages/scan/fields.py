"""The fields of a record that filters and outputs name, and the rows that a scan writes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from importlib import import_module
from typing import Any, NamedTuple

from cdxmill.formats.archives.warc_header import Head
from cdxmill.formats.lines.surt import surt
from cdxmill.regex import regex
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.pages.web_hosts import host_of
from cdxmill.stages.scan.columns import Type, fitted
from cdxmill.stages.scan.kinds import kind_of

_OTHER_NAMES = {"link": "links", "link_host": "link_hosts", "link_domain": "link_hosts", "language": "lang"}
DEFAULT = "url,time,type,status,mime,offset,length"
_FIND = regex(r"(?P<name>[\w.-]+)=(?P<field>[a-z][\w.:-]*)~(?P<pattern>.+)", re.S)
_STRIPPED = ("text", "word_count", "text_lines")
"""Fields that remove scripts from the tree of a page."""
LINES = ("text_lines", "main_text")
"""Fields with a text in lines."""
NOT_TESTED = ("meta", "jsonld", "tags")
"""Fields with objects, which have no conditions."""
Row = dict[str, Any]
NO_FIELDS: Mapping[str, Any] = {}
UserFunction = Callable[[Any], object]


class Level(IntEnum):
    """What has to be done before a field is known, from the cheapest to the most expensive."""

    HEADER = 0
    HTTP = 1
    BODY = 2
    PAGE = 3
    LANGUAGE = 4


class Field(NamedTuple):
    """A field: its level and a function from a record to its value: text, bytes, number or list.

    `of_head` reads it from the type and URL of a record, without the rest, if that is possible. `type` is that of its column.
    """

    level: Level
    read: Callable[[FullRecord], Any]
    of_head: Callable[[Head], Any] | None = None
    type: Type = Type.TEXT


def text_of(value: bytes | None) -> str | None:
    """A field of a header as text."""
    return None if value is None else value.decode("utf-8", "replace")


def _mime(record: FullRecord) -> str | None:
    found = record.content_type
    text = None if found is None else found.partition(b";")[0].strip().lower().decode("utf-8", "replace")
    return text or None


def _key(record: FullRecord) -> str | None:
    """The URL key; None if there is no URL, or one whose port is not a number."""
    try:
        return surt(record.url.encode()).decode("utf-8", "replace") if record.url else None
    except ValueError:
        return None


def _status(record: FullRecord) -> str | None:
    """The status of a response. The second word of a request is its path."""
    return None if record.kind == b"request" else text_of(record.http.status)


def _body(record: FullRecord) -> bytes | None:
    return record.body.data if record.has_payload else None


def _words(record: FullRecord) -> int | None:
    text = record.text
    return None if text is None else len(text.split())


def _warc(record: FullRecord, name: bytes) -> str | None:
    """A field of the record's header. The WARC- of its name may be omitted."""
    found = record.header(name)
    return text_of(record.header(b"warc-" + name) if found is None else found)


def _of_page(name: str) -> Callable[[FullRecord], Any]:
    return lambda record: None if record.page is None else getattr(record.page, name)


def _lines_of(name: str) -> Callable[[FullRecord], str | None]:
    """A text with lines: that of a page by its name there, all of another text."""
    return lambda record: record.plain_text if record.page is None else getattr(record.page, name)


def has_text(record: FullRecord) -> bool:
    """Whether a record is a page, a plain text or a conversion: what WET files have the texts of."""
    if record.kind == b"conversion":
        return True
    if record.kind not in (b"response", b"resource"):
        return False
    return record.page is not None or (_mime(record) == "text/plain" and record.plain_text is not None)


def _language(record: FullRecord) -> Any:
    from cdxmill.stages.pages.detectors import detect_language  # slow to import

    if record.page is not None:
        return record.page.language
    return None if record.plain_text is None else detect_language(record.plain_text)


def _declared_language(record: FullRecord) -> str | None:
    """The language that a page declares, or else its HTTP head."""
    from cdxmill.stages.pages.decode_text import language_tag

    if record.page is None:
        return None
    return record.page.declared_language or language_tag(text_of(record.http_fields.get(b"content-language")))


_HOST = Field(Level.HEADER, lambda record: host_of(record.url) or None, lambda head: host_of(head.url_text()))
_FIELDS = {
    "filename": Field(Level.HEADER, lambda record: record.filename or None),
    "url": Field(Level.HEADER, lambda record: record.url or None, Head.url_text),
    "host": _HOST,
    "domain": _HOST,
    "surt": Field(Level.HEADER, _key),
    "time": Field(Level.HEADER, lambda record: record.time or None),
    "type": Field(
        Level.HEADER,
        lambda record: record.kind.decode("latin-1") or None,
        lambda head: head.kind.decode("latin-1"),
    ),
    "length": Field(Level.HEADER, lambda record: record.length, type=Type.INT),
    "size": Field(Level.HEADER, lambda record: record.size, type=Type.INT),
    "offset": Field(Level.HEADER, lambda record: record.offset, type=Type.INT),
    "status": Field(Level.HTTP, _status),
    "mime": Field(Level.HTTP, _mime),
    "body": Field(Level.BODY, _body),
    "declared_lang": Field(Level.PAGE, _declared_language),
    "charset": Field(Level.PAGE, _of_page("charset")),
    "title": Field(Level.PAGE, _of_page("title")),
    "text": Field(Level.PAGE, lambda record: record.text),
    **{name: Field(Level.PAGE, _lines_of(name)) for name in LINES},
    "links": Field(Level.PAGE, _of_page("links"), type=Type.LIST),
    "link_hosts": Field(
        Level.PAGE,
        lambda record: record.page and list(dict.fromkeys(map(host_of, record.page.links))),
        type=Type.LIST,
    ),
    "link_count": Field(Level.PAGE, lambda record: record.page and len(record.page.links), type=Type.INT),
    "word_count": Field(Level.PAGE, _words, type=Type.INT),
    "meta": Field(Level.PAGE, _of_page("metas"), type=Type.JSON),
    "jsonld": Field(Level.PAGE, _of_page("json_ld"), type=Type.JSON),
    "tags": Field(Level.PAGE, _of_page("tags"), type=Type.JSON),
    "html": Field(Level.PAGE, lambda record: record.page and record.page.html.decode("utf-8", "replace")),
    "lang": Field(Level.LANGUAGE, lambda record: getattr(_language(record), "code", None)),
    "confidence": Field(
        Level.LANGUAGE, lambda record: getattr(_language(record), "confidence", None), type=Type.DOUBLE
    ),
}
_FIELDS.update({name: _FIELDS[field] for name, field in _OTHER_NAMES.items()})
_PREFIXES = {
    "warc": lambda name: Field(Level.HEADER, lambda record: _warc(record, name.lower().encode())),
    "header": lambda name: Field(
        Level.HTTP, lambda record: text_of(record.http_fields.get(name.lower().encode()))
    ),
    "meta": lambda name: Field(
        Level.PAGE, lambda record: record.page and record.page.metas.get(name.lower())
    ),
}
NAMES = sorted([*_FIELDS, *(f"{name}.NAME" for name in _PREFIXES)])
_MATCH = "match."


def find_field(name: str, fields: Mapping[str, Field] = NO_FIELDS) -> Field:
    """The field of this name, of `fields` or of those that each record has.

    Raises ValueError, and ImportError if a library is missing.
    """
    if name in fields:
        return fields[name]
    prefix, _, rest = name.partition(".")
    if prefix in _PREFIXES and rest:
        return _PREFIXES[prefix](rest)
    found = _FIELDS.get(name)
    if name.startswith(_MATCH):
        field = name.removeprefix(_MATCH)
        raise ValueError(f"{name} has the labels of a list, but no condition is {field}@FILE")
    if found is None:
        raise ValueError(f"unknown field {name!r}; expected one of {', '.join(NAMES)}")
    if found is _HOST:
        import_module("ada_url")  # now, and not at the first host that needs it
    return found


class CallError(Exception):
    """A function of the user raised, or returned something that cannot be written. The text is the reason."""


class UserStep(NamedTuple):
    """A function of the user and its name. `of_page`: it gets the page, and is not called if there is none.

    `columns` are those that it declares. If `is_value`, its result is the value of the only one. `column` gets the dict that it
    returns; without one, the items of the dict are columns.
    """

    name: str
    function: UserFunction
    of_page: bool
    columns: Mapping[str, Type] = NO_FIELDS
    is_value: bool = False
    column: str = ""

    def items(self, found: object) -> Row:
        """The items of a row for what the function returned. Raises CallError."""
        if self.is_value:
            found = dict.fromkeys(self.columns, found)
        if not isinstance(found, dict):
            raise CallError(
                f"{self.name} returned {type(found).__name__}; expected a dict, None, True or False"
            )
        if self.column:
            return {self.column: found}
        if not self.columns:
            return found
        try:
            return {name: fitted(self.columns[name], value) for name, value in found.items()}
        except KeyError as error:
            raise CallError(f"{self.name} does not declare the column {error}") from None
        except ValueError as error:
            raise CallError(f"{self.name} returned a value that its column cannot have: {error}") from None


class Extractor:
    """The rows of records."""

    def __init__(
        self,
        names: str,
        finds: Iterable[str],
        steps: Sequence[UserStep],
        fields: Mapping[str, Field] = NO_FIELDS,
    ) -> None:
        """`names` are fields, separated by commas, `fields` more of them; `finds` are NAME=FIELD~REGEX. Raises ValueError."""
        texts = [text for part in names.split(",") if (text := part.strip())]
        wanted = [(name, find_field(name, fields)) for name in texts]
        # The text removes scripts from the tree of a page, so fields that need it are read last.
        order = sorted(wanted, key=lambda pair: (pair[1].level, pair[0] in _STRIPPED))
        self._read = [(name, field.read) for name, field in order]
        self._names = [name for name, _ in wanted]
        finds_of = [_parse_find(text) for text in finds]
        self._finds = [(name, field.read, pattern) for name, field, pattern in finds_of]
        self._steps = steps
        self.columns = _columns(wanted, finds_of, steps)
        levels = [field.level for _, field in wanted] + [field.level for _, field, _ in finds_of]
        self.level = max([*levels, *(Level.PAGE for step in steps if step.of_page)], default=Level.HEADER)

    @property
    def needs_watch(self) -> bool:
        """Whether a row may take any time: a body is read, or code or a regular expression of the user runs."""
        return self.level > Level.HTTP or bool(self._finds or self._steps)

    def row(self, record: FullRecord) -> Row | None:
        """The row of a record; None if a function of the user rejects it. Raises CallError."""
        values = {name: read(record) for name, read in self._read}
        row = {name: _plain(values[name]) for name in self._names}
        for name, read, pattern in self._finds:
            value = _plain(read(record))
            texts = value if isinstance(value, list) else [] if value is None else [value]
            row[name] = [one for text in texts for one in pattern.findall(text)]
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
        if not step.is_value and (found is None or isinstance(found, bool)):
            return found is not False
        row.update(step.items(found))
        return True


def _columns(
    wanted: Iterable[tuple[str, Field]],
    finds: Iterable[tuple[str, Field, re.Pattern[str]]],
    steps: Iterable[UserStep],
) -> dict[str, Type]:
    """The columns of all rows, but those that a function does not declare. Raises ValueError if two have one name."""
    columns = {name: field.type for name, field in wanted}
    others = [(name, Type.JSON if pattern.groups > 1 else Type.LIST) for name, _, pattern in finds]
    for step in steps:
        others += {step.column: Type.JSON}.items() if step.column else step.columns.items()
    for name, kind in others:
        if name in columns:
            raise ValueError(f"two columns have the name {name}; give one of them another name")
        columns[name] = kind
    return columns


def json_line(row: Row) -> bytes:
    """A row as a line of JSON. Raises CallError if it cannot be one."""
    import orjson  # slow to import, and most scans of a small archive write no rows

    try:
        return orjson.dumps(row, option=orjson.OPT_NON_STR_KEYS) + b"\n"
    except orjson.JSONEncodeError as error:
        raise CallError(f"the row cannot be written as JSON ({error})") from None


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _parse_find(text: str) -> tuple[str, Field, re.Pattern[str]]:
    found = _FIND.fullmatch(text)
    if found is None:
        raise ValueError(f"invalid {text!r}; expected NAME=FIELD~REGEX, such as price=text~EUR (\\d+)")
    field = find_field(found["field"])
    kind = kind_of(found["field"])
    if kind.part is None or found["field"] in NOT_TESTED:
        raise ValueError(f"{text!r}: {found['field']} has no text that could be searched")
    try:
        return found["name"], field, re.compile(found["pattern"], kind.flags)
    except re.error as error:
        raise ValueError(f"{text!r}: not a regular expression ({error})") from None
