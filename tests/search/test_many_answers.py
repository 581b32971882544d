"""Many URLs: in which order they are looked up and answered, what is kept, and what an error ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdxmill.errors import CorruptError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.search import many
from cdxmill.search.many import Lists, Ranges, Searched, answer_urls


class Keys:
    """What is searched: each URL is its key, and its answer. `alone` and `together` have what was looked up."""

    def __init__(self, damaged: str = "") -> None:
        self.alone: list[str] = []
        self.together: list[list[str]] = []
        self.damaged = damaged
        self.searched = Searched(self.keys, self.answer, self.in_key_order)

    def keys(self, url: str) -> Ranges:
        if url.startswith("!"):
            raise UsageError(f"{url}: no key")
        key = url.encode()
        return (KeyRange(key.rstrip(b"*"), key + b"!", not url.endswith("*")),)

    def lists(self, url: str) -> Lists:
        yield [url.encode()]
        if url == self.damaged:
            raise CorruptError("x", "is corrupt")
        yield [b"end"]

    def answer(self, ranges: Ranges) -> Lists:
        self.alone.append(ranges[0].low.decode())
        return self.lists(self.alone[-1])

    def in_key_order(self, asked: list[Ranges]) -> Iterator[Lists]:
        names = [ranges[0].low.decode() for ranges in asked]
        assert names == sorted(names)
        self.together.append(names)
        return map(self.lists, names)


def answered(keys: Keys, urls: list[str], size: int = 100) -> list[tuple[str, str]]:
    """Each URL with its answer, or its error."""
    found = []
    for url, lists, error in answer_urls(keys.searched, iter(urls), size):
        try:
            text = b"+".join(line for lines in lists for line in lines).decode()
        except CorruptError as damage:
            text = damage.reason
        found.append((url, text if error is None else str(error)))
    return found


@pytest.mark.parametrize(
    ("urls", "together", "alone"),
    [
        ([], [], []),
        (["a", "b", "b", "c"], [["a", "b", "b", "c"]], []),
        (["c", "a", "b"], [["a", "b", "c"]], []),
        (["c", "!x", "a", "!y"], [["a", "c"]], []),
        (["!x"], [[]], []),
        (["c", "a*", "b"], [], ["c", "a", "b"]),
    ],
)
def test_urls_are_looked_up_in_the_order_of_their_keys_and_answered_in_theirs(
    urls: list[str], together: list[list[str]], alone: list[str]
) -> None:
    keys = Keys()
    assert answered(keys, urls) == [
        (url, f"{url}: no key" if url[0] == "!" else f"{url.rstrip('*')}+end") for url in urls
    ]
    assert (keys.together, keys.alone) == (together, alone)


@pytest.mark.parametrize(
    ("size", "together"),
    [
        (1, [["c"], ["a"], ["d"], ["b"], ["e"]]),
        (2, [["a", "c"], ["b", "d"], ["e"]]),
        (5, [["a", "b", "c", "d", "e"]]),
        (6, [["a", "b", "c", "d", "e"]]),
    ],
)
def test_urls_are_looked_up_in_batches(size: int, together: list[list[str]]) -> None:
    keys = Keys()
    assert [url for url, _ in answered(keys, list("cadbe"), size)] == list("cadbe")
    assert keys.together == together


@pytest.mark.parametrize(
    ("kept", "again"),
    [
        (0, ["c", "a", "b"]),
        (4, ["c", "a", "b"]),
        (5, ["c", "b"]),
        (8, ["c", "b"]),
        (9, ["c"]),
        (12, ["c"]),
        (13, []),
    ],
)
def test_answers_that_are_too_large_to_be_kept_are_looked_up_again(
    kept: int, again: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer has four bytes. They are kept in the order of their keys."""
    monkeypatch.setattr(many, "_KEPT", kept)
    keys = Keys()
    assert answered(keys, ["c", "a", "b"]) == [("c", "c+end"), ("a", "a+end"), ("b", "b+end")]
    assert keys.alone == again


@pytest.mark.parametrize("urls", [["a", "b", "c"], ["c", "b", "a"], ["c", "a", "b"]])
@pytest.mark.parametrize("damaged", ["a", "b", "c"])
def test_damage_ends_the_answer_that_meets_it_and_no_other(urls: list[str], damaged: str) -> None:
    keys = Keys(damaged)
    assert answered(keys, urls) == [(url, "is corrupt" if url == damaged else f"{url}+end") for url in urls]
    lines: list[bytes] = []
    with pytest.raises(CorruptError):
        for answer in answer_urls(Keys("a").searched, ["b", "a"]):
            for some in answer.lists:
                lines += some
    assert lines == [b"b", b"end", b"a"], "what was found before the damage is given"
