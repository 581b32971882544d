"""cdx-server: the workers, and what each of them is made of.

A worker starts with the settings in its environment. SIGHUP replaces the workers one after another, so that they read the
access rules again; SIGTERM lets them finish their answers.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import uvicorn
from uvicorn.supervisors import Multiprocess

from cdxmill.errors import CdxmillError, StoppedError, UsageError
from cdxmill.messages import say
from cdxmill.options.cdx_server import CdxServing
from cdxmill.regex import regex
from cdxmill.running.listening import host_of, listen
from cdxmill.running.memory import usable_memory
from cdxmill.running.processes import end_with_parent
from cdxmill.search.kept import KeptCluster
from cdxmill.search.sources import Source, find_sources
from cdxmill.server.access import Access, parse_embargo, read_rules
from cdxmill.server.app import Server, Settings
from cdxmill.server.collections import Collection
from cdxmill.server.kept_answers import PART as ANSWERS
from cdxmill.server.log import AccessLog
from cdxmill.server.metrics import DIRECTORY
from cdxmill.server.protocol import WaitingProtocol
from cdxmill.stages.zipnum.kept_texts import BlockMemory
from cdxmill.storage.location import locate

_SETTINGS = "CDXMILL_CDX_SERVER"
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TAKEN = frozenset(("cdx", "wayback", "health", "metrics", "collinfo.json", "page.css", "page.js"))
_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17), "CDXMILL_PATIENCE": "10"}
"""Variables of the server and its workers, unless the user has set them.

Without the first, glibc raises this threshold when the text of a section is freed. Then texts are cut from the heap, which gets
holes: a fifth more memory after some 100,000 requests. Without the second, a client waits for minutes for storage that fails, and
so do others, because the threads are few.
"""
_YOUNG = 10_000
"""Objects after which Python looks for garbage. With its 700, it takes a twentieth of the time."""
_LEAST_CACHE, _MOST_CACHE, _CACHE_PART = 64 << 20, 512 << 20, 32
"""Bytes of the cache of a worker by default, and the part of the memory that all workers take for it."""
_GRACE = 30
_KEEP_ALIVE = 15


@dataclass(frozen=True)
class _Started:
    """What the workers get from their parent."""

    clusters: Mapping[str, Sequence[str]]
    access: tuple[str, ...]
    embargo: str | None
    replay: str | None
    rate: int
    shared: str
    clients: str
    log: str | None
    cache: int


def serve(asked: CdxServing) -> int:
    """Serve clusters until it is stopped. Raises UsageError for what cannot be served, StoppedError if no worker starts."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    replay = asked.replay and asked.replay.rstrip("/") + "/"
    found = find_collections(asked.clusters)
    named = {name: [one.name for one in sources] for name, sources in found.items()}
    started = _Started(
        named,
        tuple(asked.access),
        asked.embargo,
        replay,
        asked.rate,
        "",
        "",
        asked.log,
        cache_size(asked, usable_memory()),
    )
    _check(started, chain.from_iterable(found.values()))
    with (
        listen(asked.bind, asked.port) as listener,
        tempfile.TemporaryDirectory(prefix="cdxmill-") as numbers,
    ):
        listener.set_inheritable(True)
        clients = str(Path(numbers) / "clients") if asked.rate else ""
        started = replace(started, shared=numbers, clients=clients)
        os.environ[_SETTINGS] = json.dumps(asdict(started))
        if asked.workers > 1:
            os.environ[DIRECTORY] = numbers
        _raise_file_limit()
        say(f"http://{host_of(asked.bind)}:{listener.getsockname()[1]}/: {', '.join(named)}")
        workers = _Workers(_config(asked.workers), [listener])
        workers.run()
        codes = [one.exitcode for one in workers.processes]
    if uvicorn.config.STARTUP_FAILURE in codes:
        raise StoppedError("the server could not start; see the messages above")
    return 0


class _Workers(Multiprocess):
    """Sees at once that a worker is gone, also while it waits for its answer.

    The parent of uvicorn keeps the worker's end of their pipe open. Then a read does not end with the worker, but after a minute.
    """

    def keep_subprocess_alive(self) -> None:
        for worker in self.processes:
            worker.child_conn.close()
        super().keep_subprocess_alive()


def cache_size(asked: CdxServing, memory: int) -> int:
    """The bytes that the cache of a worker takes, of `memory` bytes for everything.

    >>> default = [(1, 1), (1, 8), (2, 8), (1, 64), (4, 64), (8, 64)]  # workers, GiB
    >>> [cache_size(CdxServing(clusters=[], workers=n), size << 30) >> 20 for n, size in default]
    [64, 256, 128, 512, 512, 256]
    >>> [cache_size(CdxServing(clusters=[], cache=size), 1 << 30) for size in (0, 3)]
    [0, 3145728]
    """
    if asked.cache is not None:
        return asked.cache << 20
    return min(max(memory // _CACHE_PART // asked.workers, _LEAST_CACHE), _MOST_CACHE)


def _config(workers: int) -> uvicorn.Config:
    return uvicorn.Config(
        "cdxmill.server.start:application",
        factory=True,
        workers=workers,
        http=WaitingProtocol,
        loop="uvloop",
        ws="none",
        lifespan="on",
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
        timeout_worker_healthcheck=60,
    )


def application() -> Server:
    """The application of a worker. One that cannot start ends the server, unless it would have replaced one that works."""
    told = json.loads(os.environ[_SETTINGS])
    started = _Started(**{**told, "access": tuple(told["access"])})
    end_with_parent()
    try:
        return _application(started)
    except CdxmillError as error:
        say(str(error))
        sys.exit(uvicorn.config.STARTUP_FAILURE)


def _application(started: _Started) -> Server:
    access = _access(started)
    memory = BlockMemory(started.cache - started.cache // ANSWERS) if started.cache else None
    collections = {
        name: Collection(name, [find_sources(place, None)[0] for place in places], access, memory)
        for name, places in started.clusters.items()
    }
    clients = Path(started.clients) if started.clients else None
    settings = Settings(
        Path(started.shared), started.replay, started.rate, clients, started.log, started.cache
    )
    gc.freeze()  # modules are not searched for garbage
    gc.set_threshold(_YOUNG)
    return Server(collections, settings)


def _check(started: _Started, sources: Iterable[Source]) -> None:
    """Raise UsageError or InputError for what no worker could use."""
    _access(started)
    AccessLog(started.log).close()
    for source in sources:
        if not source.crawl:
            KeptCluster(source.cluster).close()


def _access(started: _Started) -> Access | None:
    if not started.access and started.embargo is None:
        return None
    embargo = None if started.embargo is None else parse_embargo(started.embargo)
    return Access(read_rules(map(locate, started.access)), embargo)


def find_collections(given: Iterable[str]) -> dict[str, list[Source]]:
    """The clusters by name. Those that were given one name are one collection. Raises UsageError."""
    found: dict[str, list[Source]] = {}
    names = set()
    for text in given:
        name, place = _split(text)
        for source in find_sources(place, None):
            if source.is_pipe or source.is_tree or source.is_server:
                raise UsageError(f"{place}: give a ZipNum cluster or a CDX file")
            own = _checked_name(name if name and not source.is_listed else _own_name(source, place), place)
            is_given = own == name
            if own in found and not (is_given and own in names):
                raise UsageError(f"two collections are named {own}; give them names: NAME={place}")
            if is_given:
                names.add(own)
            found.setdefault(own, []).append(source)
    return found


def _checked_name(name: str, place: str) -> str:
    if not _NAME.fullmatch(name) or name in _TAKEN or name.endswith("-index"):
        raise UsageError(f"{name!r} cannot be the name of a collection; give one: NAME={place}")
    return name


def _split(text: str) -> tuple[str, str]:
    name, _, place = text.partition("=")
    return (name, place) if place and _NAME.fullmatch(name) else ("", text)


def _own_name(source: Source, place: str) -> str:
    """The name of a crawl, or of a directory; of one named indexes, the name of the directory above."""
    if source.crawl:
        return source.crawl
    path = locate(locate(place).absolute())
    return path.parent.name if path.name == "indexes" else path.name


def _raise_file_limit() -> None:
    """Each connection is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
