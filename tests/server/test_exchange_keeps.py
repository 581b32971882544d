"""server/exchange.py: which answers are taken from those that were kept, which are kept, and when a tag is sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.server import exchange
from cdxmill.server.answers import Response
from cdxmill.server.collections import Collection
from cdxmill.server.dialects.request import PlannedResponse
from cdxmill.server.kept_answers import key_of
from cdxmill.server.routes import Route
from cdxmill.server.watch import Watch

from .test_exchange import Server, run

KEY = key_of(b"/x", b"")
MADE = Response(200, "text/plain", (b"made",))


class Answers:
    """Kept answers, of which there is one or none."""

    def __init__(self, kept: tuple[bytes, Response] | None) -> None:
        self.kept, self.asked, self.added = kept, list[bytes](), list[tuple[Any, ...]]()

    def get(self, key: bytes, collection: Collection) -> tuple[bytes, Response] | None:
        """The one."""
        self.asked.append(key)
        return self.kept

    def add(self, *given: Any) -> None:
        """Note it."""
        self.added.append(given)


def asked(
    answers: Answers | None,
    state: bytes | None = b"state",
    method: str = "GET",
    target: str = "",
    has_question: bool = True,
    is_quick: bool = True,
    made: Response = MADE,
) -> tuple[int, bytes, dict[bytes, bytes]]:
    """The status, the body and the headers of an answer."""
    question: Any = SimpleNamespace(state=state) if has_question else None
    planned = PlannedResponse(lambda: made, is_quick=is_quick, question=question)
    server = Server(Route("some", lambda _: planned, Collection("some", [], None), target))
    server.answers = answers  # type: ignore[assignment]
    head, *bodies = run(server, method=method)
    return head["status"], b"".join(one["body"] for one in bodies), dict(head["headers"])


def test_a_kept_answer_is_sent_with_its_tag() -> None:
    answers = Answers((b"state", Response(200, "text/plain", (b"ke", b"pt"))))
    status, body, headers = asked(answers)
    assert (status, body, answers.asked, answers.added) == (200, b"kept", [KEY], [])
    assert headers[b"etag"] == asked(None)[2][b"etag"]


@pytest.mark.parametrize(("method", "target"), [("HEAD", ""), ("GET", "http://a/"), ("HEAD", "http://a/")])
def test_answers_for_one_client_or_without_a_body_are_not_kept(method: str, target: str) -> None:
    answers = Answers((b"state", Response(200, "text/plain", (b"kept",))))
    status, body, _ = asked(answers, method=method, target=target)
    assert (status, body) == (200, b"" if method == "HEAD" else b"made")
    assert (answers.asked, answers.added) == ([], [])


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize("has_question", [True, False])
@pytest.mark.parametrize("state", [b"state", None])
def test_a_whole_answer_of_a_known_state_is_kept(
    state: bytes | None, has_question: bool, is_quick: bool
) -> None:
    answers = Answers(None)
    status, body, headers = asked(answers, state, has_question=has_question, is_quick=is_quick)
    assert (status, body, answers.asked) == (200, b"made", [KEY])
    is_known = has_question and state is not None
    assert [(one[0], one[1], one[3]) for one in answers.added] == (
        [(KEY, b"state", b"made")] if is_known else []
    )
    assert (b"etag" in headers) == is_known
    assert (b"cache-control" in headers) == is_known


@pytest.mark.parametrize("body", [(), (b"",), (b"", b"made")])
def test_an_answer_may_be_empty_or_begin_so(body: tuple[bytes, ...]) -> None:
    assert asked(Answers(None), made=Response(200, "text/plain", body))[:2] == (200, b"".join(body))


def test_a_part_of_an_answer_is_not_kept() -> None:
    answers = Answers(None)
    long = bytes(1 << 17)
    assert asked(answers, made=Response(200, "text/plain", (long, b"end")))[:2] == (200, long + b"end")
    assert answers.added == []


@pytest.mark.parametrize(("status", "has_tag"), [(200, True), (404, False), (302, False)])
def test_only_what_was_found_has_a_tag(status: int, has_tag: bool) -> None:
    assert (b"etag" in asked(None, made=Response(status, "text/plain", (b"x",)))[2]) == has_tag


def test_time_counts_while_an_answer_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Noted(Watch):
        """It notes what it is asked."""

        def begin(self) -> None:
            done.append("begin")
            super().begin()

        def end(self) -> None:
            done.append("end")
            super().end()

    monkeypatch.setattr(exchange, "Watch", Noted)
    assert asked(None)[0] == 200
    assert done == ["begin", "end"] * 2
