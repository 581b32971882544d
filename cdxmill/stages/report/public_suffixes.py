"""The public suffix list, for hosts that are reversed as in keys. The library publicsuffixlist brings the list.

The functions of that library take 15 microseconds per host, as long as it takes to read 15 lines; these take 1.
https://github.com/publicsuffix/list/wiki/Format
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate


class PublicSuffixes:
    """The rules of a public suffix list. Requires: `lines` are those of the file."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._plain: set[bytes] = set()
        self._any: set[bytes] = set()
        self._exceptions: set[bytes] = set()
        self._inner: set[bytes] = set()
        """All rules, and all that they begin with: the search ends at anything else."""
        for line in lines:
            if line and not line.isspace() and not line.startswith("//"):
                self._add(line.split()[0])

    def _add(self, rule: str) -> None:
        kind = {"!": self._exceptions, "*": self._any}.get(rule[0], self._plain)
        name = rule.lstrip("!*").lstrip(".")
        labels = (name.encode() if name.isascii() else name.encode("idna")).split(b".")[::-1]
        kind.add(b",".join(labels))
        self._inner.update(accumulate(labels, lambda before, label: b"%b,%b" % (before, label)))

    def registered(self, host: bytes) -> bytes | None:
        """The registered domain of a host, both reversed as in keys; None if the host is a public suffix.

        >>> suffixes = PublicSuffixes(["uk", "co.uk", "*.ck", "!www.ck"])
        >>> [suffixes.registered(host) for host in (b"uk,co,bbc,www", b"uk,co", b"ck,a,b,c", b"ck,www,x", b"new,a,b")]
        [b'uk,co,bbc', None, b'ck,a,b', b'ck,www', b'new,a']
        """
        depth, number, end = 1, 0, -1
        while end < len(host):
            end = host.find(b",", end + 1)
            end = len(host) if end < 0 else end
            number += 1
            name = host[:end]
            if name not in self._inner:
                break
            if name in self._exceptions:
                depth = number - 1
                break
            if name in self._any:
                depth = number + 1
            elif name in self._plain:
                depth = number
        labels = host.split(b",")
        return b",".join(labels[: depth + 1]) if len(labels) > depth else None
