"""Regular expressions that are compiled at their first use. A command uses few of those that its modules have.

This module imports nothing of the package, so that every directory may use it.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")


class _Late:
    """Stands for a pattern. After its first use, it has the methods of the compiled one as attributes."""

    def __init__(self, *given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # asked by copy and pickle
            raise AttributeError(name)
        compiled = re.compile(*self._given)
        vars(self).update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern that `re.compile` makes, made later. An invalid one fails at its first use.

    >>> regex("a+").sub("b", "caat")
    'cbt'
    """
    return cast("re.Pattern[AnyStr]", _Late(text, flags))
