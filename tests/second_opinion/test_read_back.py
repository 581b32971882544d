"""warcio reads the byte range of each line: it is exactly the record of that line."""

from __future__ import annotations

import gzip

import pytest
from warcio.exceptions import ArchiveLoadFailed

from .archives import ARCHIVES, Archive
from .opinions import cut
from .seen import ReadError, Seen, seen_alone, seen_at
from .survey import Survey


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_a_range_holds_exactly_the_record_of_its_line(archive: Archive, surveyed: Survey) -> None:
    wrong = []
    for offset, row in surveyed.run.answers[archive.name].rows.items():
        try:
            alone = seen_alone(cut(archive.path, offset, int(row["length"])))
        except (ReadError, ArchiveLoadFailed) as error:
            wrong.append(f"@{offset}: {error}")
            continue
        if _name(alone) != _name(seen_at(archive.path, offset)):
            wrong.append(f"@{offset}: {_name(alone)}")
        if alone.url.replace(" ", "%20") != row["url"]:
            wrong.append(f"@{offset}: {alone.url} is not {row['url']}")
    assert wrong == []


def _name(record: Seen) -> tuple[str, ...]:
    """The identity of a record: its WARC-Record-ID; in ARC its URL and date."""
    return (record.url, record.date) if record.is_arc else (record.identity,)


def test_the_samples_give_thousands_of_lines(surveyed: Survey) -> None:
    lines = sum(len(ours.rows) for ours in surveyed.run.answers.values())
    assert lines > (4000 if len(ARCHIVES) > 100 else 100)


RECORD = (
    b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: urn:a\r\n"
    b"WARC-Record-ID: <urn:uuid:1>\r\nContent-Length: 5\r\n\r\nhello"
)
MEMBER = gzip.compress(RECORD + b"\r\n\r\n")


@pytest.mark.parametrize("whole", [RECORD, MEMBER], ids=["plain", "gz"])
def test_a_truncated_or_too_long_range_is_detected(whole: bytes) -> None:
    assert seen_alone(whole).identity == "<urn:uuid:1>"
    for data in (whole[:-1], whole[1:], whole + b"\r\n", whole + b"\r\n\r\n" + whole, whole + whole, b""):
        with pytest.raises((ReadError, ArchiveLoadFailed)):
            seen_alone(data)
