"""The public suffix list, for hosts that are reversed as in keys. The library publicsuffixlist brings the list.

The functions of that library take 15 microseconds per host, as long as it takes to read 15 lines; these take 1.
https://github.com/publicsuffix/list/wiki/Format
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, takewhile
from typing import NamedTuple

_BEGIN, _END = "// ===BEGIN ICANN DOMAINS===", "// ===END ICANN DOMAINS==="
_PLAIN, _ANY, _EXCEPTION = 1, 2, 4
_REGISTRY = 8
"""A rule of a registry is this times more: its bits are beside those of all rules."""


class Depths(NamedTuple):
    """How many of its last labels are the public suffix of a host: by the rules of registries, and by all rules. 0: no rule."""

    registry: int
    private: int


class PublicSuffixes:
    """The rules of a public suffix list. Requires: `lines` are those of the file."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules: dict[bytes, int] = {}
        """Rules, and all that they begin with: the search ends at anything else."""
        self._known: dict[bytes, Depths] = {}
        """The depths of hosts by what they share with a rule, which is all that decides."""
        self._encoded: list[tuple[str, int]] = []
        """Rules that are not ASCII. Encoding them takes as long as reading all others, and few hosts need them."""
        is_registry = False
        for line in lines:
            if line.startswith((_BEGIN, _END)):
                is_registry = line.startswith(_BEGIN)
            elif line and not line.isspace() and not line.startswith("//"):
                self._add(line.split()[0], is_registry)

    def _add(self, rule: str, is_registry: bool) -> None:
        kind = {"!": _EXCEPTION, "*": _ANY}.get(rule[0], _PLAIN)
        name, bits = rule.lstrip("!*").lstrip("."), kind * (1 + _REGISTRY) if is_registry else kind
        if name.isascii():
            self._insert(name.encode(), bits)
        else:
            self._encoded.append((name, bits))

    def _insert(self, name: bytes, bits: int) -> None:
        rules = self._rules
        *first, last = accumulate(name.split(b".")[::-1], lambda before, label: b"%b,%b" % (before, label))
        for inner in first:
            rules.setdefault(inner, 0)
        rules[last] = rules.get(last, 0) | bits

    def depths(self, host: bytes) -> Depths:
        """The public suffixes of a host, which is reversed as in keys.

        >>> suffixes = PublicSuffixes([_BEGIN, "com", "*.ck", "!www.ck", _END, "blogspot.com"])
        >>> [tuple(suffixes.depths(host)) for host in (b"com,blogspot,a", b"ck,a,b", b"ck,www", b"ck", b"new,a")]
        [(1, 2), (2, 2), (1, 1), (1, 1), (0, 0)]
        """
        if self._encoded and b"xn--" in host:
            for name, bits in self._encoded:
                self._insert(name.encode("idna"), bits)
            self._encoded, self._known = [], {}
        end = self._shared(host)
        if end == len(host):
            return self._depths_of(host)
        found = self._known.get(host[:end])
        if found is None:
            found = self._known[host[:end]] = self._depths_of(host)
        return found

    def _shared(self, host: bytes) -> int:
        """How many bytes of a host are those of a rule, or of a start of one. Whole labels only."""
        rules, end, stop = self._rules, 0, host.find(b",")
        while stop >= 0 and host[:stop] in rules:
            end, stop = stop, host.find(b",", stop + 1)
        return len(host) if stop < 0 and host in rules else end

    def _depths_of(self, host: bytes) -> Depths:
        """As `depths`, by all rules that the host has labels of."""
        labels = host.split(b",")
        starts = accumulate(labels, lambda before, label: b"%b,%b" % (before, label))
        found = [self._rules[start] for start in takewhile(self._rules.__contains__, starts)]
        private, registry = (_depth(found, shift) for shift in (1, _REGISTRY))
        return Depths(min(registry, len(labels)), min(private, len(labels)))

    def registered(self, host: bytes) -> bytes | None:
        """The registered domain of a host, both reversed as in keys; None if the host is a public suffix.

        >>> suffixes = PublicSuffixes(["uk", "co.uk", "*.ck", "!www.ck"])
        >>> [suffixes.registered(host) for host in (b"uk,co,bbc,www", b"uk,co", b"ck,a,b,c", b"ck,www,x", b"new,a,b")]
        [b'uk,co,bbc', None, b'ck,a,b', b'ck,www', b'new,a']
        """
        depth = self.depths(host).private or 1
        labels = host.split(b",", depth + 1)
        if len(labels) == depth + 1:
            return host
        return b",".join(labels[: depth + 1]) if len(labels) > depth else None


def _depth(found: list[int], shift: int) -> int:
    depth = 0
    for number, bits in enumerate(found, start=1):
        kind = bits // shift
        if kind & _EXCEPTION:
            return number - 1
        if kind & _ANY:
            depth = number + 1
        elif kind & _PLAIN:
            depth = number
    return depth
