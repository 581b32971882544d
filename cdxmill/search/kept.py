"""A cluster that stays open for many questions of several threads. If others change it, it is opened again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cdxmill.cluster.find import Rule
from cdxmill.cluster.reader import ClusterReader
from cdxmill.errors import UsageError
from cdxmill.search.lookup import open_searched
from cdxmill.search.opened import OpenCluster
from cdxmill.stages.zipnum.kept_texts import BlockMemory


class KeptCluster:
    """The cluster or CDX file at a path or URL. What is needed again of its blocks is kept in `memory`.

    Raises UsageError if there is none, InputError if it cannot be read or is corrupt.
    """

    def __init__(self, path: str, rule: Rule | None = None, memory: BlockMemory | None = None) -> None:
        self.path, self._rule, self._memory = path, rule, memory
        self._lock = threading.Lock()
        self._held: HeldCluster | None = HeldCluster(path, rule, memory)

    def close(self) -> None:
        """Close its files. It can be asked nothing more."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            held.files.close()

    def check_open(self) -> None:
        """Raise UsageError if it was closed."""
        if self._held is None:
            raise self._closed()

    def _closed(self) -> UsageError:
        return UsageError(f"{self.path}: the cluster was closed")

    @contextmanager
    def opened(self) -> Iterator[OpenCluster]:
        """The cluster for one answer: a block that is being read is not shared with other threads.

        If others have changed the cluster, it is opened again. The files of the old one are closed after its last answer.
        """
        held = self.take()
        try:
            yield OpenCluster.of(held.reader)
        finally:
            self.give_back(held)

    @property
    def has_to_open(self) -> bool:
        """Whether the next answer opens a changed file of lines first, which may take long."""
        held = self._held
        return held is not None and not isinstance(held.reader, ClusterReader) and held.reader.has_changed()

    def take(self) -> HeldCluster:
        """The cluster for one answer, as `opened`, until it is given back."""
        with self._lock:
            held = self._current()
            held.answers += 1
        return held

    def give_back(self, held: HeldCluster) -> None:
        """End a `take`."""
        with self._lock:
            held.answers -= 1
            held.close_unused()

    def version(self) -> object | None:
        """Differs for each state of the cluster. None if that is not known."""
        with self._lock:
            reader = self._current().reader
        return reader.version if isinstance(reader, ClusterReader) else None

    def _current(self) -> HeldCluster:
        """The open cluster, opened again if others have changed it. Requires: the lock is held."""
        held = self._held
        if held is None:
            raise self._closed()
        if held.reader.has_changed():
            old, held = held, HeldCluster(self.path, self._rule, self._memory)
            self._held = held
            old.is_old = True
            old.close_unused()
        return held


class HeldCluster:
    """An open cluster, and the number of answers that are being read from it."""

    def __init__(self, path: str, rule: Rule | None, memory: BlockMemory | None) -> None:
        self.files = ExitStack()
        self.reader = self.files.enter_context(open_searched(path, rule)).reader
        if isinstance(self.reader, ClusterReader):
            self.reader.tables.memory = memory
        self.answers, self.is_old = 0, False

    def close_unused(self) -> None:
        """Close the files of an old one that nobody reads."""
        if self.is_old and not self.answers:
            self.files.close()
