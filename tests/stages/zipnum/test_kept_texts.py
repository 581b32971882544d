"""Texts are kept if they are needed again soon, and what was needed long ago is forgotten."""

from __future__ import annotations

import pytest

from cdxmill.stages.zipnum.kept_texts import BlockMemory, KeptTexts


def hit(texts: KeptTexts, key: str, times: int) -> None:
    for _ in range(times):
        texts.get(key)


def test_a_text_is_wanted_at_its_second_hit_until_its_hits_are_long_ago() -> None:
    texts = KeptTexts(1000, counted=10)
    wanted = []
    for _ in range(2):
        assert texts.get("a") is None
        wanted.append(texts.is_wanted("a"))
    assert wanted == [False, True]
    for other in range(7):
        texts.get(other)
    assert texts.is_wanted("a")
    texts.get("the tenth")  # all hits are halved
    assert not texts.is_wanted("a")
    texts.get("a")
    assert texts.is_wanted("a")


def test_a_text_that_is_too_large_is_not_wanted_again_for_a_long_time() -> None:
    texts = KeptTexts(800, counted=1 << 30)
    assert texts.largest == 100
    for key, size in (("small", 100), ("large", 101)):
        for _ in range(2):
            texts.get(key)
        assert texts.is_wanted(key)
        texts.add(key, b"x" * size)
        assert not texts.is_wanted(key)
    assert (texts.get("small"), texts.get("large")) == (b"x" * 100, None)
    for _ in range(100):
        texts.get("large")
    assert not texts.is_wanted("large")


def test_the_least_recently_used_texts_go_first() -> None:
    texts = KeptTexts(800, beside=10)
    for number in range(8):
        texts.add(number, b"x" * 90)
    assert texts.get(0) == b"x" * 90
    texts.add(8, b"x" * 90)
    assert [number for number in range(9) if texts.get(number) is None] == [1]
    texts.add(8, b"y" * 90)
    assert texts.get(0) is not None
    assert texts.get(8) == b"y" * 90


def test_hits_are_halved_again_after_as_many_hits_as_before() -> None:
    texts = KeptTexts(1000, counted=10)
    hit(texts, "a", 10)  # 5 are left
    hit(texts, "b", 9)
    assert texts.is_wanted("a")
    hit(texts, "b", 1)  # 2 are left
    assert texts.is_wanted("a")
    hit(texts, "b", 9)
    assert texts.is_wanted("a")
    hit(texts, "b", 1)
    assert not texts.is_wanted("a")


@pytest.mark.parametrize(("oldest", "needed"), [(0, 3), (1, 3), (2, 5), (3, 7)])
def test_a_text_replaces_the_oldest_one_if_it_is_needed_more_than_twice_as_often(
    oldest: int, needed: int
) -> None:
    texts = KeptTexts(1000, counted=1 << 30)
    hit(texts, "0", oldest)
    for number in range(10):
        assert not texts.is_wanted("new")
        texts.add(str(number), b"x" * 100)
    hit(texts, "1", 20)
    hit(texts, "new", needed - 1)
    assert not texts.is_wanted("new")
    hit(texts, "new", 1)
    assert texts.is_wanted("new")


@pytest.mark.parametrize(("size", "needed"), [(101, 3), (100, 2)])
def test_the_memory_is_full_if_there_is_no_room_for_a_usual_text(size: int, needed: int) -> None:
    texts = KeptTexts(1100, counted=1 << 30)
    for number in range(10):
        texts.add(str(number), b"x" * size)
    hit(texts, "new", needed - 1)
    assert not texts.is_wanted("new")
    hit(texts, "new", 1)
    assert texts.is_wanted("new")


@pytest.mark.parametrize(("kept", "counted"), [(0, 640), (64, 640), (65, 650)])
def test_ten_hits_are_counted_for_each_text_that_is_kept(kept: int, counted: int) -> None:
    texts = KeptTexts(1 << 20)
    for number in range(kept):
        texts.add(str(number), b"x")
    hit(texts, "a", 2)
    hit(texts, "b", counted - 3)
    assert texts.is_wanted("a")
    hit(texts, "b", 1)
    assert not texts.is_wanted("a")


def test_what_cannot_be_made_is_not_wanted_again_for_a_long_time() -> None:
    texts = KeptTexts(800, counted=1 << 30)
    hit(texts, "a", 2)
    texts.add("a", None)
    hit(texts, "a", 100)
    assert not texts.is_wanted("a")
    assert texts.get("a") is None


def test_an_eighth_of_the_memory_is_for_keys() -> None:
    memory = BlockMemory(1 << 20)
    assert memory.keys.largest == (1 << 17) // 8
    assert memory.texts.largest == (7 << 17) // 8
    hit(memory.keys, "a", 2)
    hit(memory.keys, "b", 125)
    assert memory.keys.is_wanted("a")
    hit(memory.keys, "b", 1)  # the 128th
    assert not memory.keys.is_wanted("a")
