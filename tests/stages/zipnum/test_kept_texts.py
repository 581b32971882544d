"""Texts are kept if they are needed again soon, and what was needed long ago is forgotten."""

from __future__ import annotations

from cdxmill.stages.zipnum.kept_texts import KeptTexts


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
