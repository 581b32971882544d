"""A collection that takes long to open stops no other question; one that has changed is opened again."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdxmill.search.sources import find_sources
from cdxmill.server.app import Server, Settings
from cdxmill.server.collections import Collection

from .asking import Answered, ask

QUERY = "url=slow.com"
LINE = b'com,slow)/ 20200101000000 {"url": "http://slow.com/"}\n'
PATIENCE = 10
"""Seconds after which the slow collection opens in any case, so that the test ends."""


def serving(place: Path) -> Server:
    collections = {"slow": Collection("slow", find_sources(str(place), None), None)}
    return Server(collections, Settings(place.parent))


@contextmanager
def slow(pipe: Path) -> Iterator[Callable[[], None]]:
    """A file that can be read once the function was called."""
    os.mkfifo(pipe)
    may_open = threading.Event()

    def write() -> None:
        may_open.wait(PATIENCE)
        pipe.write_bytes(LINE)

    writer = threading.Thread(target=write)
    writer.start()
    yield may_open.set
    writer.join()


async def ask_while_it_opens(server: Server, path: str, query: str, let_open: Callable[[], None]) -> Answered:
    """The answer to a question that opens the slow file, after one to another question."""
    found = list[Answered]()

    async def take(path: str, query: str) -> None:
        found.append(await ask(server, path, query))

    opening = asyncio.ensure_future(take(path, query))
    await asyncio.sleep(0)
    await take("/health", "")
    let_open()
    await opening
    assert b"ok" in found[0].body
    return found[1]


@pytest.mark.parametrize("path", ["/slow/cdx", "/slow", "/slow/cdx/search/cdx", "/slow/available"])
def test_other_questions_are_answered_while_a_collection_is_opened(path: str, tmp_path: Path) -> None:
    pipe = tmp_path / "slow.cdxj"
    query = QUERY + "&timestamp=2020" * path.endswith("available")
    with slow(pipe) as let_open:
        found = asyncio.run(ask_while_it_opens(serving(pipe), path, query, let_open))
    assert found.status == 200
    assert b"slow.com" in found.body


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed file is opened again, however long it took the last time."""
    monkeypatch.setattr("cdxmill.search.cdx_file._RARELY", 0)


@pytest.mark.usefixtures("at_once")
def test_other_questions_are_answered_while_a_changed_file_is_opened(tmp_path: Path) -> None:
    file, pipe = tmp_path / "slow.cdxj", tmp_path / "pipe"
    file.write_bytes(LINE.replace(b"2020", b"2019"))
    server = serving(file)

    async def run(let_open: Callable[[], None]) -> list[Answered]:
        before = await ask(server, "/slow/cdx", QUERY)
        file.unlink()
        os.link(pipe, file)
        return [before, await ask_while_it_opens(server, "/slow/cdx", QUERY, let_open)]

    with slow(pipe) as let_open:
        found = asyncio.run(run(let_open))
    assert found == [(200, LINE.replace(b"2020", b"2019")), (200, LINE)]


@pytest.mark.usefixtures("at_once")
def test_a_file_is_read_anew_after_it_was_replaced_or_grew_or_came_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, found = tmp_path / "lines.cdxj", list[Answered]()
    lines = [LINE.replace(b"2020", b"20%d" % year) for year in range(20, 24)]
    file.write_bytes(lines[0])
    server = serving(file)

    def answer() -> Answered:
        return asyncio.run(ask(server, "/slow/cdx", QUERY))

    found.append(answer())
    with file.open("ab") as more:
        more.write(lines[1])
    found.append(answer())
    (tmp_path / "new").write_bytes(lines[2] + lines[3])
    (tmp_path / "new").rename(file)
    found.append(answer())
    file.unlink()
    assert answer().status == 500
    assert "cannot be read" in capsys.readouterr().err
    file.write_bytes(lines[3])
    found.append(answer())
    assert found == [(200, b"".join(some)) for some in (lines[:1], lines[:2], lines[2:], lines[3:])]


def test_a_cluster_that_is_gone_gives_no_answer_until_it_is_there_again(
    many_cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = shutil.copytree(many_cluster, tmp_path / "c")
    server = serving(cluster)

    def answer() -> Answered:
        return asyncio.run(ask(server, "/slow/cdx", "url=*&limit=2"))

    before = answer()
    cluster.rename(tmp_path / "moved")
    during = answer()
    (tmp_path / "moved").rename(cluster)
    assert (before.status, during.status, answer()) == (200, 503, before)
    assert str(tmp_path).encode() not in during.body
    assert str(cluster) in capsys.readouterr().err
