"""What a record of a real archive has in a field is a value that finds this record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from cdxmill.formats.archives.warc_header import HeaderMatch, HeaderShapes
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.records.read_contents import Content, choose_contents
from cdxmill.stages.scan.fields import NAMES, NOT_TESTED, find_field
from cdxmill.stages.scan.kinds import kind_of
from cdxmill.stages.scan.plan import Plan
from cdxmill.storage.location import locate
from cdxmill.storage.scratch import Scratch

_FIELDS = [name for name in NAMES if name not in NOT_TESTED and "." not in name]
_SHORT = 2000
"""Characters of a value that is compared."""


def values(record: FullRecord, name: str) -> Iterator[str]:
    """Some values of a field that can be written as text in single quotes, and that are not empty."""
    found = find_field(name).read(record)
    for value in islice(found if isinstance(found, list) else [found], 3):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else f"{value}"
        if value not in (None, "") and not {"'", "\ufffd"} & {*text} and len(text) < _SHORT:
            yield text


def conditions(record: FullRecord) -> Iterator[str]:
    for name in _FIELDS:
        for text in values(record, name):
            yield f"{name}='{text}'"
            if kind_of(name).part is not None:
                yield f"{name}:'{text}'"
                yield f"{name}^='{text}'"


@pytest.mark.parametrize(
    ("name", "most"), [("iana.warc.gz", 40), ("IAH-*blackbook.arc.gz", 40), ("*.wet.gz", 5)]
)
def test_a_record_has_the_values_that_it_shows(samples: Path, name: str, most: int, tmp_path: Path) -> None:
    shapes, tested = HeaderShapes(), set[str]()

    def choose(content: Content, found: HeaderMatch | None) -> bool:
        record = FullRecord(content, 0, shapes, found)
        for text in conditions(record):
            if text not in tested:
                assert Plan([text], lambda _: []).passes(record), text
                tested.add(text)
        return True

    with locate(str(next(samples.rglob(name)))).open_ranges() as read_at:
        records = choose_contents(read_at, Scratch(tmp_path), choose)
        assert len(list(islice(records, most))) > 1
    assert len(tested) > 20
