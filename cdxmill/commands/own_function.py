"""A user's own function or class, named MODULE:NAME, from which `count` makes a counter."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from cdxmill.errors import UsageError
from cdxmill.stages.counting.own_counter import Items, OwnCounter

_JOB = "cdxmill.jobs.count_job"


def own_counter(name: str) -> OwnCounter:
    """The counter of MODULE:FUNCTION, or of a class with a method `items`. Raises UsageError.

    Modules in the working directory are found after all others.
    """
    module_name, colon, own_name = name.partition(":")
    if not (colon and module_name and own_name):
        raise UsageError(f"invalid --call {name!r}; expected MODULE:FUNCTION")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # never before the libraries: a directory may hold a file named like one
    try:
        with without_mrjob():
            found = getattr(importlib.import_module(module_name), own_name, None)
            return OwnCounter(items_of(found))
    except TypeError as error:
        raise UsageError(f"--call {name}: {error}") from None
    except Exception as error:  # whatever the user's module raises
        raise UsageError(f"--call {name}: cannot be imported ({type(error).__name__}: {error})") from None


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
