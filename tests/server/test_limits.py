"""How many requests a client may send, by a clock of the test; and the names of collections."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdxmill.errors import UsageError
from cdxmill.server import limits
from cdxmill.server.limits import ClientLimits
from cdxmill.server.start import find_collections


class Limited:
    """Limits at a moment."""

    def __init__(self, rate: float, file: Path) -> None:
        self.now = 1000.0
        self.limits = ClientLimits(rate, file, lambda: self.now)

    def wait(self, client: str = "1.2.3.4") -> float:
        return self.limits.wait(client)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Limited]:
    """At most two requests a second, so 20 at once."""
    found = Limited(2, tmp_path / "clients")
    yield found
    found.limits.close()


def test_the_requests_of_ten_seconds_may_come_at_once(limited: Limited) -> None:
    assert [limited.wait() for _ in range(20)] == [0] * 20
    assert [limited.wait(), limited.wait()] == [0.5, 0.5]
    limited.now += 0.25
    assert limited.wait() == 0.25
    limited.now += 0.25
    assert [limited.wait(), limited.wait()] == [0, 0.5]
    limited.now += 1
    assert [limited.wait() for _ in range(3)] == [0, 0, 0.5]


def test_nobody_saves_more_than_ten_seconds(limited: Limited) -> None:
    limited.wait()
    limited.now += 1e6
    assert [limited.wait() for _ in range(21)].count(0) == 20


def test_a_clock_that_goes_back_gives_and_takes_nothing(limited: Limited) -> None:
    for _ in range(20):
        limited.wait()
    limited.now -= 100
    assert limited.wait() == 0.5
    limited.now += 0.5
    assert limited.wait() == 0


def test_each_client_has_its_own_requests(limited: Limited) -> None:
    for _ in range(20):
        limited.wait()
    assert limited.wait() > 0
    assert limited.wait("1.2.3.5") == limited.wait("::1") == limited.wait("\udcff") == 0


def test_a_rate_below_one_request_in_ten_seconds_allows_one(tmp_path: Path) -> None:
    limited = Limited(0.01, tmp_path / "clients")
    assert [limited.wait(), limited.wait()] == [0, 100]
    limited.now += 99
    assert round(limited.wait(), 6) == 1
    limited.now += 1
    assert [limited.wait(), limited.wait()] == [0, 100]
    limited.limits.close()


def test_workers_count_together(limited: Limited, tmp_path: Path) -> None:
    other = Limited(2, tmp_path / "clients")
    assert [one.wait() for one in (limited, other) * 10] == [0] * 20
    assert limited.wait() == other.wait() == 0.5
    other.limits.close()


def test_a_worker_holds_the_row_of_a_client_while_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[int, int, int]] = []
    fake = SimpleNamespace(
        LOCK_EX=fcntl.LOCK_EX, LOCK_UN=fcntl.LOCK_UN, lockf=lambda _, *given: done.append(given)
    )
    monkeypatch.setattr(limits, "fcntl", fake)
    limited = Limited(2, tmp_path / "clients")
    clients = [f"1.2.3.{number}" for number in range(9)]
    for client in clients:
        limited.wait(client)
    held, free = done[::2], done[1::2]
    places = [place for _, _, place in held]
    assert held == [(fcntl.LOCK_EX, 1, place) for place in places]
    assert free == [(fcntl.LOCK_UN, 1, place) for place in places]
    assert len(set(places)) == len(clients)
    assert {place % 24 for place in places} == {0}, "a row has 24 bytes"
    assert max(places) > 1 << 16
    limited.limits.close()


def test_a_table_is_private_and_is_given_back(tmp_path: Path) -> None:
    limited = Limited(2, tmp_path / "clients")
    assert (tmp_path / "clients").stat().st_mode & 0o777 == 0o600
    file = limited.limits._file
    os.fstat(file)
    limited.limits.close()
    assert limited.limits._table.closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)


def test_collections_are_named_by_the_user_or_by_their_directory(tmp_path: Path) -> None:
    for name in ("a", "b", "crawl/indexes", "cdx", "x-index"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "cluster.idx").touch()

    def names(*given: str) -> dict[str, int]:
        found = find_collections([text.replace("@", str(tmp_path)) for text in given])
        return {name: len(sources) for name, sources in found.items()}

    assert names("@/a", "@/b") == {"a": 1, "b": 1}
    assert names("all=@/a,@/b") == {"all": 2}
    assert names("all=@/a", "all=@/b", "@/b") == {"all": 2, "b": 1}
    assert names("@/crawl/indexes") == {"crawl": 1}
    assert names("x=@/cdx") == {"x": 1}
    for wrong, reason in {
        ("@/a", "@/a"): "two collections are named a",
        ("@/a,@/b",): "give them names",
        ("@/a", "a=@/b"): "two collections are named a",
        ("a=@/b", "@/a"): "two collections are named a",
        ("@/cdx",): "'cdx' cannot be the name",
        ("@/x-index",): "'x-index' cannot be the name",
        ("y-index=@/a",): "'y-index' cannot be the name",
        ("-",): "give a ZipNum cluster or a CDX file",
        ("cdx+https://server.example/web",): "give a ZipNum cluster or a CDX file",
    }.items():
        with pytest.raises(UsageError, match=reason):
            names(*wrong)
