"""Answers that are kept or not made at all because nothing has changed, their tags, and the time that counts for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdxmill.server.answers import Response
from cdxmill.server.collections import Collection, Inquiry
from cdxmill.server.dialects.request import PlannedResponse, Request
from cdxmill.server.exchange import Exchange
from cdxmill.server.kept_answers import KeptAnswers
from cdxmill.server.routes import Route

from ..material.clock import Clock
from .test_exchange import SCOPE, Server, run

STATE = b""
"""That of a collection without clusters."""
KIND = "text/plain"


class Asked:
    """A route whose answer is made anew each time that it has to be."""

    def __init__(
        self,
        pieces: tuple[bytes, ...] = (b"some ", b"text"),
        state: bytes | None = STATE,
        status: int = 200,
        target: str = "",
        has_question: bool = True,
    ) -> None:
        self.made = 0
        collection = Collection("some", [], None)
        assert collection.state() == STATE
        question = cast(Inquiry, SimpleNamespace(state=state)) if has_question else None

        def make() -> Response:
            self.made += 1
            return Response(status, KIND, pieces)

        self.route = Route("some", lambda _: PlannedResponse(make, True, question), collection, target)


class Answer:
    """What a client gets."""

    def __init__(self, server: Server, method: str = "GET") -> None:
        head, *bodies = run(server, method=method)
        self.status, self.headers = head["status"], dict(head["headers"])
        self.body = b"".join(one["body"] for one in bodies)

    @property
    def tag(self) -> bytes | None:
        found: bytes | None = self.headers.get(b"etag")
        assert (found is None) == (b"cache-control" not in self.headers)
        return found


def keeping(asked: Asked) -> Server:
    server = Server(asked.route)
    server.answers = KeptAnswers(1 << 20)  # type: ignore[assignment]
    return server


def test_an_answer_is_made_twice_and_then_kept() -> None:
    asked = Asked()
    server = keeping(asked)
    answers = [Answer(server) for _ in range(5)]
    assert asked.made == 2
    assert {(one.status, one.body, one.headers[b"content-type"]) for one in answers} == {
        (200, b"some text", b"text/plain")
    }
    assert len({one.tag for one in answers}) == 1
    assert answers[0].headers[b"cache-control"] == b"public, max-age=60"
    assert [one[3] for one in server.logged] == [9] * 5
    head = Answer(server, "HEAD")
    assert (head.status, head.body, head.tag, asked.made) == (200, b"", answers[0].tag, 3)


@pytest.mark.parametrize(
    "asked",
    [
        Asked(target="http://a.com/"),
        Asked(state=None),
        Asked(status=404),
        Asked(pieces=(bytes(1 << 16), b"x")),
        Asked(has_question=False),
    ],
    ids=["target", "unknown", "404", "long", "no question"],
)
def test_other_answers_are_made_each_time(asked: Asked) -> None:
    server = keeping(asked)
    answers = [Answer(server) for _ in range(5)]
    assert asked.made == 5
    assert len({one.body for one in answers}) == 1


def test_nothing_is_kept_without_a_memory_for_it() -> None:
    asked = Asked()
    server = Server(asked.route)
    assert [Answer(server).body for _ in range(5)] == [b"some text"] * 5
    assert asked.made == 5


def test_a_head_without_a_body_is_never_kept_for_the_answer() -> None:
    asked = Asked()
    server = keeping(asked)
    for _ in range(4):
        assert Answer(server, "HEAD").body == b""
    assert Answer(server).body == b"some text"
    assert asked.made == 5


@pytest.mark.parametrize(
    ("asked", "has_tag"),
    [
        (Asked(), True),
        (Asked(pieces=()), True),
        (Asked(pieces=(bytes(1 << 16), b"x")), True),
        (Asked(state=None), False),
        (Asked(status=404), False),
        (Asked(status=302), False),
        (Asked(has_question=False), False),
    ],
)
def test_an_answer_that_may_be_asked_for_again_has_a_tag(asked: Asked, has_tag: bool) -> None:
    assert (Answer(Server(asked.route)).tag is not None) == has_tag


def test_a_tag_is_that_of_a_state_and_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = set()
    for path, query, state in (
        (b"/x", b"", b"1"),
        (b"/x", b"a", b"1"),
        (b"/y", b"", b"1"),
        (b"/x", b"", b"2"),
    ):
        monkeypatch.setitem(SCOPE, "raw_path", path)
        monkeypatch.setitem(SCOPE, "query_string", query)
        tag = Answer(Server(Asked(state=state).route)).tag
        assert tag == Answer(Server(Asked(state=state).route)).tag
        assert tag is not None
        assert tag.startswith(b'W/"')
        tags.add(tag)
    assert len(tags) == 4


@pytest.mark.parametrize("form", ["%b", 'W/"1", %b', '%b, W/"1"'])
def test_a_client_that_has_the_answer_gets_no_other(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    server = Server(asked.route)
    tag = Answer(server).tag
    assert tag is not None
    monkeypatch.setitem(SCOPE, "headers", [(b"if-none-match", form.encode() % tag)])
    same = Answer(server)
    assert (same.status, same.body, same.tag, asked.made) == (304, b"", tag, 1)
    assert b"content-type" not in same.headers
    monkeypatch.setitem(SCOPE, "headers", [(b"if-none-match", form.encode() % b'W/"2"')])
    assert (Answer(server).status, asked.made) == (200, 2)


def test_an_unknown_state_is_never_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    server = Server(asked.route)
    tag = Answer(server).tag
    monkeypatch.setattr(Collection, "state", lambda _: None)
    monkeypatch.setitem(SCOPE, "headers", [(b"if-none-match", tag)])
    assert Answer(server).status == 200


def test_an_empty_answer_ends() -> None:
    for pieces in ((), (b"",), (b"", b"")):
        found = Answer(Server(Asked(pieces=pieces).route))
        assert (found.status, found.body, found.headers[b"content-length"]) == (200, b"", b"0")


def lengths(*sizes: int) -> list[int]:
    """The bytes of each message of an answer in pieces of these sizes."""
    pieces = (bytes(size) for size in sizes)
    planned = PlannedResponse(lambda: Response(200, KIND, pieces), is_quick=False)
    server = Server(Route("some", lambda _: planned, Collection("some", [], None)))
    return [len(message["body"]) for message in run(server)[1:]]


def test_a_slice_has_at_least_64_kibibytes() -> None:
    assert lengths(65535, 1, 5) == [65536, 5]
    assert lengths(65535) == [65535]
    assert lengths(65536) == [65536, 0]
    assert lengths(65537, 1) == [65537, 1]


def on_clock(
    monkeypatch: pytest.MonkeyPatch, endpoint: Callable[[Clock, Request], PlannedResponse]
) -> list[Mapping[str, Any]]:
    """What is sent if time passes only where the endpoint says so."""

    class Whole(Clock):
        def perf_counter(self) -> float:
            """The same time."""
            return self.now

    clock = Whole()
    for module in ("watch", "exchange"):
        monkeypatch.setattr(f"cdxmill.server.{module}.time", clock)
    return run(Server(Route("some", lambda one: endpoint(clock, one), Collection("some", [], None))))


@pytest.mark.parametrize(
    ("waited", "making", "seconds", "status"),
    [(0, 100, 30, 503), (0, 60, 60, 200), (0, 60, 61, 503), (200, 60, 60, 200), (200, 121, 0, 503)],
)
@pytest.mark.parametrize("is_quick", [True, False])
def test_the_time_of_an_answer_begins_when_it_is_made(
    waited: int, making: int, seconds: int, status: int, is_quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endpoint(clock: Clock, request: Request) -> PlannedResponse:
        clock.now += waited

        def make() -> Response:
            clock.now += making
            request.watch.check()
            return Response(200, KIND, pieces())

        def pieces() -> Iterator[bytes]:
            clock.now += seconds
            request.watch.check()
            yield b"x"

        return PlannedResponse(make, is_quick)

    head, *_ = on_clock(monkeypatch, endpoint)
    assert head["status"] == status


def test_the_header_has_the_milliseconds_until_the_answer_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def endpoint(clock: Clock, _: Request) -> PlannedResponse:
        clock.now += 4
        return PlannedResponse(lambda: Response(200, KIND, (b"x",)))

    assert dict(on_clock(monkeypatch, endpoint)[0]["headers"])[b"server-timing"] == b"answer;dur=4000.000"


def test_nothing_waits_for_a_client_whose_answer_is_sent() -> None:
    left: list[asyncio.Task[Any]] = []
    server = Server(Asked(pieces=(bytes(1 << 16), b"x")).route)

    async def story() -> None:
        async def send(_: Mapping[str, Any]) -> None:
            pass

        async def receive() -> Mapping[str, Any]:
            return cast(Mapping[str, Any], await asyncio.get_running_loop().create_future())

        await Exchange(server, SCOPE, receive, send).run()  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        left.extend(one for one in asyncio.all_tasks() if one is not asyncio.current_task())

    asyncio.run(story())
    assert left == []
