"""Regular expressions of strangers: re2 takes time that grows with the text alone, whatever the pattern is."""

from __future__ import annotations

import re

import re2

_MEMORY = 1 << 20
_LONGEST = 1000


class _Safe:
    """A compiled pattern. Texts that are not UTF-8 are matched as bytes."""

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.max_mem, options.log_errors = _MEMORY, False
        self._compiled = re2.compile(text.encode("utf-8", "surrogateescape"), options)

    def match(self, text: str, /) -> object | None:
        """The match at the start of a text."""
        found: object | None = self._compiled.match(text.encode("utf-8", "surrogateescape"))
        return found


def compile_safely(text: str) -> _Safe:
    """A pattern for `parse_filter`. Raises re.error."""
    if len(text) > _LONGEST:
        raise re.error(f"it has more than {_LONGEST} characters")
    try:
        return _Safe(text)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise re.error(f"{reason}; the server reads the syntax of RE2, without lookaround") from None
