"""What a worker is made of, from what its parent tells it; and names of collections at their limits."""

from __future__ import annotations

import json
import os
import re
import socket
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from uvicorn import Config
from uvicorn.supervisors import Multiprocess

from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.options.cdx_server import CdxServing
from cdxmill.search.sources import find_sources
from cdxmill.server import start
from cdxmill.server.access import AccessRule, Times
from cdxmill.server.metrics import DIRECTORY
from cdxmill.server.protocol import WaitingProtocol
from cdxmill.server.start import find_collections

LINE = 'com,a)/ 20200101000000 {"url": "http://a.com/"}\n'


@pytest.fixture
def place(tmp_path: Path) -> str:
    (tmp_path / "a.cdxj").write_text(LINE)
    return str(tmp_path / "a.cdxj")


@pytest.fixture
def called() -> list[str]:
    """What a worker does to its process."""
    return []


@pytest.fixture
def started(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: list[str]) -> start._Started:
    """What a parent tells; the worker leaves this process as it is."""
    quiet = SimpleNamespace(
        freeze=lambda: called.append("freeze"),
        set_threshold=lambda size: called.append(f"threshold {size}"),
    )
    monkeypatch.setattr(start, "gc", quiet)
    monkeypatch.setattr(start, "end_with_parent", lambda: called.append("end with parent"))
    return start._Started({"web": [place]}, (), None, "http://replay/", 0, str(tmp_path), "", None, 1 << 20)


@pytest.mark.parametrize(
    ("name", "is_name"),
    [
        ("a", True),
        ("A.b_c-1", True),
        ("a" * 100, True),
        ("a" * 101, False),
        (".a", False),
        ("-a", False),
        ("a b", False),
        ("a/b", False),
        ("é", False),
        ("", False),
    ],
)
def test_what_stands_before_an_equals_sign_may_be_a_name(name: str, is_name: bool) -> None:
    text = f"{name}=/x=y"
    assert start._split(text) == ((name, "/x=y") if is_name else ("", text))


@pytest.mark.parametrize("text", ["a", "a=", "=", "=b", "/a=b"])
def test_a_place_without_a_name_is_all_of_the_text(text: str) -> None:
    assert start._split(text) == ("", text)


@pytest.mark.parametrize(
    "name",
    ["cdx", "wayback", "health", "metrics", "collinfo.json", "page.css", "page.js", "a-index", "-index"],
)
def test_names_that_paths_need_are_refused(name: str, place: str) -> None:
    with pytest.raises(UsageError) as caught:
        start._checked_name(name, place)
    assert str(caught.value) == f"{name!r} cannot be the name of a collection; give one: NAME={place}"
    with pytest.raises(UsageError):
        find_collections([f"{name}={place}"])


@pytest.mark.parametrize("name", ["a b", "", ".a", "a" * 101])
def test_a_name_has_few_characters(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a collection"):
        start._checked_name(name, "x")


def test_clusters_of_one_name_are_a_collection_if_all_were_given_it(place: str, tmp_path: Path) -> None:
    (tmp_path / "crawl/indexes").mkdir(parents=True)
    below = str(tmp_path / "crawl/indexes")
    Path(below, "cluster.idx").touch()

    def named(*given: str) -> dict[str, int]:
        return {name: len(sources) for name, sources in find_collections(given).items()}

    assert named(place) == {"a.cdxj": 1}
    assert named(below) == named(below + "/") == {"crawl": 1}
    assert named(f"x={place}", f"y={place}", f"x={below}") == {"x": 2, "y": 1}
    assert named(f"x={place}", f"x={place}", f"x={place}") == {"x": 3}
    for given in (
        [place, place],
        [place, f"a.cdxj={place}"],
        [f"a.cdxj={place}", place],
        [f"crawl={place}", below],
    ):
        with pytest.raises(UsageError, match=r"two collections are named \S+; give them names: NAME="):
            find_collections(given)


def source_of(**what: object) -> SimpleNamespace:
    kinds = {"is_pipe": False, "is_tree": False, "is_server": False, "is_listed": False, "crawl": ""}
    return SimpleNamespace(**(kinds | what))


@pytest.mark.parametrize("kind", ["is_pipe", "is_tree", "is_server"])
def test_only_clusters_and_files_of_lines_are_served(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "find_sources", lambda place, _: [source_of(**{kind: True})])
    with pytest.raises(UsageError, match="/x: give a ZipNum cluster or a CDX file"):
        find_collections(["a=/x"])


def test_the_crawls_of_a_list_have_their_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [source_of(is_listed=True, crawl="CC-1"), source_of(is_listed=True, crawl="CC-2")]
    monkeypatch.setattr(start, "find_sources", lambda place, _: found)
    assert find_collections(["a=/x/collinfo.json"]) == {"CC-1": [found[0]], "CC-2": [found[1]]}
    with pytest.raises(UsageError, match="two collections are named CC-1; give them names: NAME=/y"):
        find_collections(["/x", "/y"])
    with pytest.raises(UsageError, match="two collections are named CC-1"):
        find_collections(["/x", "CC-1=/y"])


def test_a_parent_closes_the_pipes_of_its_workers_before_it_asks_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(Multiprocess, "keep_subprocess_alive", lambda _: done.append("asked"))
    workers = object.__new__(start._Workers)
    pipe = SimpleNamespace(close=lambda: done.append("closed"))
    vars(workers)["processes"] = [SimpleNamespace(child_conn=pipe)] * 2
    workers.keep_subprocess_alive()
    assert done == ["closed", "closed", "asked"]


def test_names_that_only_look_like_them_are_not_refused(place: str) -> None:
    for name in ("cdx2", "index", "a-indexes", "Health"):
        assert list(find_collections([f"{name}={place}"])) == [name]


@pytest.mark.parametrize(("threads", "expected"), [(1, 512), (2, 512), (4, 256), (16, 64), (64, 64)])
def test_the_cache_has_a_least_and_a_most(threads: int, expected: int) -> None:
    asked = CdxServing(clusters=[], workers=threads)
    assert start.cache_size(asked, 32 << 30) == expected << 20
    assert start.cache_size(CdxServing(clusters=[], workers=threads, cache=0), 1) == 0
    assert start.cache_size(CdxServing(clusters=[], workers=threads, cache=3), 1) == 3 << 20


def test_a_worker_has_the_collections_of_its_parent(started: start._Started, place: str) -> None:
    server = start._application(replace(started, clusters={"web": [place], "two": [place, place]}))
    collections = server._collections
    assert {name: len(one.sources) for name, one in collections.items()} == {"web": 1, "two": 2}
    assert all(one.access is None and one._memory is not None for one in collections.values())
    assert collections["web"]._memory is collections["two"]._memory
    assert (server.replay, server._limit, server.log.is_open) == ("http://replay/", None, False)
    assert server.answers is not None
    memory = collections["web"]._memory
    assert memory is not None
    assert memory.texts.largest + memory.keys.largest == ((1 << 20) - (1 << 17)) // 8


def test_a_worker_without_a_cache_keeps_nothing(started: start._Started) -> None:
    server = start._application(replace(started, cache=0))
    assert server._collections["web"]._memory is None
    assert server.answers is None


def test_a_worker_limits_its_clients_and_writes_a_log(started: start._Started, tmp_path: Path) -> None:
    server = start._application(
        replace(started, rate=1, clients=str(tmp_path / "clients"), log=str(tmp_path / "log"))
    )
    assert server._limit is not None
    assert [server._limit.wait("1.2.3.4") > 0 for _ in range(11)] == [False] * 10 + [True]
    assert server.log.is_open
    server._limit.close()
    server.log.close()


def test_a_worker_reads_rules_and_embargo(started: start._Started, tmp_path: Path) -> None:
    (tmp_path / "rules.aclj").write_text('com,a)/ - {"access": "block"}\n')
    rules = (str(tmp_path / "rules.aclj"),)
    line = LINE.encode()
    for access, embargo, shown in (
        ((), None, None),
        (rules, None, False),
        ((), "before:2021", False),
        ((), "before:2020", True),
        (rules, "before:2019", False),
    ):
        found = start._access(replace(started, access=access, embargo=embargo))
        assert (found is None) == (shown is None)
        assert found is None or found.visible()(line) == shown
    found = start._access(replace(started, access=rules, embargo="after:2019"))
    assert found is not None
    assert found._rules == {b"com,a)/": AccessRule("block", None)}
    assert found._embargo == Times("after", b"2019")


def test_what_no_worker_could_use_is_refused_before_one_starts(
    started: start._Started, place: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.aclj").write_text("bad\n")
    sources = find_sources(place, None)
    start._check(started, sources)
    with pytest.raises(InputError, match="is no access rule"):
        start._check(replace(started, access=(str(tmp_path / "bad.aclj"),)), sources)
    with pytest.raises(UsageError, match="invalid embargo"):
        start._check(replace(started, embargo="x"), sources)
    with pytest.raises(UsageError, match="the log cannot be written"):
        start._check(replace(started, log=str(tmp_path / "none" / "log")), sources)
    Path(place).unlink()
    with pytest.raises((InputError, UsageError)):
        start._check(started, sources)


def test_a_worker_is_told_by_its_environment(
    started: start._Started, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(start._SETTINGS, json.dumps(asdict(started)))
    assert start.application().replay == "http://replay/"
    assert called == ["end with parent", "freeze", "threshold 10000"]


def test_a_worker_that_cannot_start_says_why(
    started: start._Started, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(start._SETTINGS, json.dumps(asdict(replace(started, embargo="x"))))
    with pytest.raises(SystemExit) as caught:
        start.application()
    assert caught.value.code == 3
    assert capsys.readouterr().err.startswith("invalid embargo 'x'")


@pytest.mark.parametrize(("soft", "hard", "wanted"), [(256, 4096, 4096), (256, 1 << 20, 1 << 16), (256, -1, 1 << 16), (1 << 16, -1, None), (4096, 4096, None), ((1 << 16) + 1, 1 << 20, None)])  # fmt: skip
def test_a_server_has_as_many_files_as_it_may(
    soft: int, hard: int, wanted: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[tuple[int, tuple[int, int]]] = []
    fake = SimpleNamespace(
        RLIMIT_NOFILE=7,
        RLIM_INFINITY=-1,
        getrlimit=lambda which: (soft, hard) if which == 7 else (0, 0),
        setrlimit=lambda which, limits: changed.append((which, limits)),
    )
    monkeypatch.setattr(start, "resource", fake)
    start._raise_file_limit()
    assert changed == ([] if wanted is None else [(7, (wanted, hard))])


def test_the_workers_speak_http_in_the_way_of_the_server() -> None:
    config = start._config(3)
    assert (config.workers, config.lifespan, config.ws, config.access_log) == (3, "on", "none", False)
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (15, 30)
    assert config.server_header is False
    assert config.factory is True
    assert config.timeout_worker_healthcheck == 60
    assert config.http is WaitingProtocol


class Workers:
    """In place of processes: they note their environment and end."""

    seen: ClassVar[list[tuple[str | None, str]]] = []
    told: ClassVar[list[dict[str, Any]]] = []
    codes: ClassVar[list[int | None]] = []

    def __init__(self, config: Config, sockets: list[socket.socket]) -> None:
        self.processes: list[SimpleNamespace] = []
        assert all(os.get_inheritable(one.fileno()) for one in sockets)

    def run(self) -> None:
        """Note what a worker finds in its environment."""
        told = json.loads(os.environ[start._SETTINGS])
        self.seen.append((os.environ.get(DIRECTORY), told["clients"]))
        self.told.append(told)
        self.processes = [SimpleNamespace(exitcode=code) for code in self.codes]


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> type[Workers]:
    """The server starts none, and leaves this process as it is."""
    for name in (DIRECTORY, start._SETTINGS, *start._ENVIRONMENT):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(start, "_Workers", Workers)
    monkeypatch.setattr(start, "_raise_file_limit", lambda: None)
    monkeypatch.setattr(Workers, "seen", [])
    monkeypatch.setattr(Workers, "told", [])
    monkeypatch.setattr(Workers, "codes", [])
    return Workers


@pytest.mark.parametrize("rate", [0, 1])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_several_workers_add_up_their_numbers_and_only_limits_need_the_clients(
    number: int, rate: int, place: str, workers: type[Workers]
) -> None:
    assert start.serve(CdxServing(clusters=[f"web={place}"], workers=number, rate=rate, port=0)) == 0
    ((numbers, clients),) = workers.seen
    assert (numbers is not None) == (number > 1)
    assert bool(clients) == bool(rate)
    assert numbers is None or not Path(numbers).exists()
    assert {name: os.environ[name] for name in start._ENVIRONMENT} == start._ENVIRONMENT


@pytest.mark.parametrize(
    ("codes", "is_stopped"), [([0, None], False), ([1, -15], False), ([0, 3], True), ([3, 1], True)]
)
def test_a_worker_that_could_not_start_stops_the_server(
    codes: list[int | None], is_stopped: bool, place: str, workers: type[Workers]
) -> None:
    workers.codes.extend(codes)
    with pytest.raises(StoppedError, match="could not start") if is_stopped else nullcontext():
        start.serve(CdxServing(clusters=[f"web={place}"], port=0))


@pytest.mark.parametrize(
    ("replay", "told"),
    [(None, None), ("http://r", "http://r/"), ("http://r/", "http://r/"), ("http://r//", "http://r/")],
)
def test_workers_get_what_was_asked_for(
    replay: str | None, told: str | None, place: str, tmp_path: Path, workers: type[Workers]
) -> None:
    (tmp_path / "rules.aclj").write_text('com,a)/ - {"access": "block"}\n')
    rules, log = str(tmp_path / "rules.aclj"), str(tmp_path / "log")
    asked = CdxServing(
        clusters=[f"web={place}", f"two={place}"],
        access=[rules],
        embargo="before:2020",
        replay=replay,
        rate=3,
        log=log,
        cache=5,
        port=0,
    )
    assert start.serve(asked) == 0
    (found,) = workers.told
    assert {name: value for name, value in found.items() if name not in ("shared", "clients")} == {
        "clusters": {"web": [place], "two": [place]},
        "access": [rules],
        "embargo": "before:2020",
        "replay": told,
        "rate": 3,
        "log": log,
        "cache": 5 << 20,
    }


def test_a_server_says_where_it_is_and_prepares_for_many_connections(
    place: str,
    workers: type[Workers],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done: list[str] = []
    monkeypatch.setattr(start, "_raise_file_limit", lambda: done.append("limit"))
    assert start.serve(CdxServing(clusters=[f"web={place}", f"two={place}"], port=0)) == 0
    assert done == ["limit"]
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*/: web, two\n", capsys.readouterr().err)


def test_no_worker_starts_for_what_none_could_use(place: str, workers: type[Workers]) -> None:
    with pytest.raises(UsageError, match="invalid embargo"):
        start.serve(CdxServing(clusters=[f"web={place}"], embargo="x", port=0))
    assert workers.seen == []
