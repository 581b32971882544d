"""Which records are packed together: neighbors of which one names the other."""

from __future__ import annotations

import pytest

from cdxmill.capture import Damage
from cdxmill.stages.records import pack_contents
from cdxmill.stages.records.pack_contents import group_contents
from cdxmill.stages.records.read_contents import Content

SIZE = len(b"WARC/1.0\r\nWARC-Record-ID: <1>\r\nWARC-Concurrent-To: <1>\r\nContent-Length: 0\r\n\r\n\r\n\r\n")


def contents(*links: tuple[int, int]) -> list[Content]:
    """Records by their number, and the number of the one that they name; 0 for none."""
    found, offset = [], 0
    for own, other in links:
        head = b"WARC/1.0\r\n"
        head += b"WARC-Record-ID: <%d>\r\n" % own if own else b""
        head += b"WARC-Concurrent-To: <%d>\r\n" % other if other else b""
        data = head + b"Content-Length: 0\r\n\r\n\r\n\r\n"
        found.append(Content(offset, len(data), len(data), data))
        offset += len(data)
    return found


def sizes(items: list[Content | Damage]) -> list[int]:
    """How many records each group has; 0 for damage."""
    return [0 if isinstance(one, Damage) else one.records for one in group_contents(items)]


@pytest.mark.parametrize(
    ("links", "groups"),
    [
        ([(1, 0), (2, 1)], [2]),
        ([(1, 2), (2, 0)], [2]),
        ([(1, 0), (2, 1), (3, 1), (4, 2)], [4]),
        ([(1, 0), (2, 0)], [1, 1]),
        ([(1, 0), (2, 3), (3, 0)], [1, 2]),
        ([(1, 0), (2, 1), (3, 0), (4, 1)], [2, 1, 1]),
        ([(1, 0), (0, 1), (2, 1)], [1, 1, 1]),
        ([(0, 0), (0, 0)], [1, 1]),
        ([(0, 0), (1, 0)], [1, 1]),
        ([(0, 1), (1, 0)], [1, 1]),
        ([(1, 0), (0, 1)], [1, 1]),
        ([], []),
    ],
)
def test_neighbors_are_joined_if_one_names_the_other(links: list[tuple[int, int]], groups: list[int]) -> None:
    items = contents(*links)
    assert sizes([*items]) == groups
    made = list(group_contents(items))
    assert b"".join(one.data or b"" for one in made if isinstance(one, Content)) == b"".join(
        one.data or b"" for one in items
    )
    assert [one.offset for one in made] == [
        items[sum(groups[:number])].offset for number in range(len(groups))
    ]
    assert all(one.size == len(one.data or b"") for one in made if isinstance(one, Content))
    assert sum(one.length for one in made if isinstance(one, Content)) == sum(one.length for one in items)


@pytest.mark.parametrize(("held", "groups"), [(2 * SIZE, [2, 1]), (2 * SIZE - 1, [1, 1, 1]), (3 * SIZE, [3])])
def test_a_group_has_a_largest_size(held: int, groups: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_contents, "HELD", held)
    assert sizes([*contents((1, 1), (2, 1), (3, 1))]) == groups


def test_damage_and_large_records_end_a_group() -> None:
    first, second, third = contents((1, 0), (2, 1), (3, 2))
    assert sizes([first, Damage(7, "corrupt"), second, third]) == [1, 0, 2]
    large = second._replace(data=None)
    assert sizes([first, large, third]) == [1, 1, 1]
