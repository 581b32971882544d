"""A sample: which shares and numbers can be asked for, and the smallest of many numbers."""

from __future__ import annotations

import pytest

from cdxmill.capture import Headers
from cdxmill.stages.scan.columns import Type
from cdxmill.stages.scan.fields import Level
from cdxmill.stages.scan.sampling import Smallest, parse_sample, sample_field


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, (1.0, 0)),
        ("100%", (1.0, 0)),
        ("100.0%", (1.0, 0)),
        ("1%", (0.01, 0)),
        (".5%", (0.005, 0)),
        ("0.5%", (0.005, 0)),
        ("001%", (0.01, 0)),
        ("1", (1.0, 1)),
        ("999999999", (1.0, 999_999_999)),
        *(
            (text, None)
            for text in ("0%", "0.0%", "100.1%", "101%", "1000%", "5.%", "-1%", "0", "01", "1000000000", "")
        ),
        *((text, None) for text in (" 1", "1 %", "%", ".%", "1e3", "\u0661", "\u0661%", "1%\n", "1\n")),
    ],
)
def test_a_sample_is_a_share_or_a_number(text: str | None, found: tuple[float, int] | None) -> None:
    if found is not None:
        assert parse_sample(text) == found
        return
    with pytest.raises(ValueError, match="invalid --sample ") as error:
        parse_sample(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 6])
def test_the_smallest_numbers_are_kept(most: int) -> None:
    given = [0.5, 0.25, 0.75, 0.0, 0.25]
    smallest = Smallest(most)
    for at, number in enumerate(given, 1):
        known = sorted(given[: at - 1])[:most]
        assert smallest.limit() == (known[-1] if len(known) == most else None)
        assert smallest.takes(number) == (len(known) < most or number < known[-1])
        smallest.add(number)
        assert sorted(smallest.numbers()) == sorted(given[:at])[:most]
    assert smallest.takes(1.0) == (most > len(given))


class Given:
    """What a sample looks at of a record."""

    def __init__(self, own: bytes | None, url: str, time: str) -> None:
        self._headers: Headers = {} if own is None else {b"warc-record-id": own}
        self.url, self.time = url, time

    def header(self, name: bytes) -> bytes | None:
        return self._headers.get(name)


def test_the_number_of_a_record_depends_on_its_id_url_and_date_alone() -> None:
    field = sample_field(1)
    records = [
        Given(own, url, time)
        for own in (None, b"<urn:1>", b"<urn:2>")
        for url in ("http://a.org/", "http://b.org/")
        for time in ("20140101000000", "20150101000000")
    ]
    numbers = [field.read(one) for one in records]  # type: ignore[arg-type]
    assert len(set(numbers)) == len(records)
    assert all(0 <= one < 1 for one in numbers)
    assert numbers == [sample_field(1).read(one) for one in records]  # type: ignore[arg-type]
    assert not set(numbers) & {sample_field(2).read(one) for one in records}  # type: ignore[arg-type]
    assert numbers[0] == field.read(Given(b"", "http://a.org/", "20140101000000"))  # type: ignore[arg-type]
    assert (field.level, field.type) == (Level.HEADER, Type.DOUBLE)


def test_the_number_stays_the_same_from_version_to_version() -> None:
    """A sample can be drawn again years later. It uses all 53 bits of a double."""
    one = Given(b"<urn:1>", "http://a.org/", "20140101000000")
    number = sample_field(0).read(one)  # type: ignore[arg-type]
    assert number * 2**53 == int(number * 2**53)
    assert number == 0.8316952450894607
