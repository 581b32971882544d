"""A user's own function or class, named MODULE:NAME, from which `count` makes a counter; modules on other machines."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from cdxmill.commands.own_module import imported
from cdxmill.errors import UsageError
from cdxmill.stages.counting.own_counter import Items, OwnCounter

_JOB = "cdxmill.jobs.count_job"


class OwnSource(NamedTuple):
    """The source of the module of MODULE:NAME, which other machines do not have."""

    name: str
    source: bytes

    def counter(self, directory: Path) -> OwnCounter:
        """The counter, on a machine that has got the source. It is written to `directory`."""
        module, _, own = self.name.partition(":")
        path = directory / f"{module.rpartition('.')[2]}.py"
        path.write_bytes(self.source)
        return counter_in_file(path, own)


def own_counter(name: str) -> OwnCounter:
    """The counter of MODULE:FUNCTION, or of a class with a method `items`. Raises UsageError.

    Modules in the working directory are found after all others.
    """
    own = name.rpartition(":")[2]
    try:
        with without_mrjob():
            return OwnCounter(items_of(getattr(_module_of(name), own, None)))
    except TypeError as error:
        raise UsageError(f"--call {name}: {error}") from None
    except UsageError:
        raise
    except Exception as error:  # whatever the user's module raises
        raise UsageError(f"--call {name}: cannot be imported ({type(error).__name__}: {error})") from None


def own_source(name: str) -> OwnSource:
    """The source of a counter that `own_counter` has found. Raises UsageError."""
    file = getattr(_module_of(name), "__file__", None) or ""  # built-in modules have none
    if not file.endswith(".py"):
        raise UsageError(f"--call {name}: has no file with its source, which other machines need")
    return OwnSource(name, Path(file).read_bytes())


def _module_of(name: str) -> ModuleType:
    module, colon, own = name.partition(":")
    if not (colon and module and own):
        raise UsageError(f"invalid --call {name!r}; expected MODULE:FUNCTION")
    return imported(module)


def counter_in_file(path: Path, name: str) -> OwnCounter:
    """The counter in a file that was sent to this machine."""
    return OwnCounter(items_of(getattr(load_module(path), name)))


def load_module(path: Path) -> ModuleType:
    """The module in a file that was sent to this machine."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with without_mrjob():
        spec.loader.exec_module(module)
    return module


def items_of(found: Any) -> Items:
    """The function that counts: `found` itself, or the method of a class. Raises TypeError."""
    items = getattr(found(), "items", None) if isinstance(found, type) else found
    if not callable(items):
        raise TypeError("there is no such function, and no such class with a method `items`")
    return items  # type: ignore[no-any-return]


@contextmanager
def without_mrjob() -> Iterator[None]:
    """Import the module of a job without its base class, so that mrjob is not needed."""
    before = sys.modules.get(_JOB)
    stub = ModuleType(_JOB)
    stub.CountJob = object  # type: ignore[attr-defined]
    sys.modules[_JOB] = stub
    try:
        yield
    finally:
        del sys.modules[_JOB]
        if before is not None:
            sys.modules[_JOB] = before
