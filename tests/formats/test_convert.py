"""CDX lines of 6 fields become CDXJ with the same six values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.lines.cdx_lines import convert_line

fields = st.text(st.characters(exclude_characters=" \n", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.lists(fields, min_size=6, max_size=6))
def test_all_six_values_come_back_from_the_json(values: list[str]) -> None:
    key, timestamp, url, length, offset, filename = values
    line = convert_line(" ".join(values).encode())
    assert line.startswith(f"{key} {timestamp} {{".encode())
    content = json.loads(line.split(b" ", 2)[2])
    assert content == {"url": url, "length": length, "offset": offset, "filename": filename}
    assert list(content) == ["url", "length", "offset", "filename"]


@pytest.mark.parametrize("count", [0, 1, 5, 7, 11])
def test_another_number_of_fields_is_refused_with_the_line(count: int) -> None:
    line = " ".join(["com,a)/"] * count)
    with pytest.raises(ValueError, match="fields, expected 6"):
        convert_line(line.encode())
