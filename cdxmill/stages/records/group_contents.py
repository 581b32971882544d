"""Records of one capture -> one content: its request, response and metadata, if they follow each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdxmill.capture import Damage, Headers
from cdxmill.formats.archives.header_shape import HeaderShapes, fields_of
from cdxmill.stages.records.parse_header import parse_header
from cdxmill.stages.records.read_contents import HELD, Content
from cdxmill.stages.records.record_errors import RecordError


def group_contents(contents: Iterable[Content | Damage]) -> Iterator[Content | Damage]:
    """Join records of which one names the other in WARC-Concurrent-To, up to HELD bytes. All else passes through."""
    group: list[Content] = []
    ids: set[bytes | None] = set()
    about: set[bytes | None] = set()
    shapes = HeaderShapes()
    for item in contents:
        headers = {} if isinstance(item, Damage) else _headers(item, shapes)
        own, concurrent = headers.get(b"warc-record-id"), headers.get(b"warc-concurrent-to")
        belongs = bool(own) and (own in about or concurrent in ids)
        if group and not (belongs and _has_room(group, item)):
            yield _joined(group)
            group, ids, about = [], set(), set()
        if isinstance(item, Damage) or item.data is None or not own:
            yield item
            continue
        group.append(item)
        ids.add(own)
        about.add(concurrent)
    if group:
        yield _joined(group)


def _has_room(group: list[Content], item: Content | Damage) -> bool:
    return not isinstance(item, Damage) and sum(one.size for one in group) + item.size <= HELD


def _headers(item: Content, shapes: HeaderShapes) -> Headers:
    if item.data is None:
        return {}
    found = shapes.match(item.data)
    if found is not None:
        return fields_of(found)
    try:
        return parse_header(item.data, shapes.parse)[0]
    except RecordError:  # blank lines
        return {}


def _joined(group: list[Content]) -> Content:
    first, last = group[0], group[-1]
    data = b"".join(one.data or b"" for one in group) if len(group) > 1 else first.data
    length = last.offset + last.length - first.offset
    return Content(first.offset, length, len(data or b""), data, records=len(group))
