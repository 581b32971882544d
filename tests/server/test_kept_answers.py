"""Answers that are kept: those to questions that were asked before, until their collection changes."""

from __future__ import annotations

import pytest

from cdxmill.server.answers import Response
from cdxmill.server.collections import Collection
from cdxmill.server.kept_answers import KeptAnswers, key_of

COLLECTION = Collection("some", [], None)
STATE = COLLECTION.state() or b""
ANSWER = Response(200, "text/plain", ())
BODY = b"one\n\ntwo\n"
KEY = key_of(b"/some/cdx", b"url=a.com")


def kept(answer: Response, asked_before: bool = True, state: bytes = STATE, key: bytes = KEY) -> bool:
    """Whether an answer is given again."""
    answers = KeptAnswers(1 << 20)
    for _ in range(2 if asked_before else 1):
        assert answers.get(KEY, COLLECTION) is None
    answers.add(KEY, state, answer, BODY)
    found = answers.get(key, COLLECTION)
    assert found is None or found == (STATE, Response(200, answer.kind, (BODY,)))
    return found is not None


def test_an_answer_that_is_asked_for_again_is_given_as_it_was() -> None:
    assert kept(ANSWER)


def test_an_answer_to_a_new_question_is_not_kept() -> None:
    assert not kept(ANSWER, asked_before=False)


@pytest.mark.parametrize(
    "answer",
    [
        Response(404, "text/plain", ()),
        Response(202, "text/plain", ()),
        Response(302, "text/plain", (), ((b"location", b"http://a.com/"),)),
        Response(200, "text/html", (), ((b"cache-control", b"public"),)),
    ],
)
def test_only_plain_answers_are_kept(answer: Response) -> None:
    assert not kept(answer)


def test_an_answer_of_before_a_change_is_not_given() -> None:
    assert not kept(ANSWER, state=STATE + b"x")


@pytest.mark.parametrize(("path", "query"), [(b"/some/cdx", b"url=b.com"), (b"/other/cdx", b"url=a.com")])
def test_an_answer_is_that_to_one_question(path: bytes, query: bytes) -> None:
    assert not kept(ANSWER, key=key_of(path, query))
