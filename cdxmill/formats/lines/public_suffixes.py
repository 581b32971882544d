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
_KINDS = {"!": _EXCEPTION, "*": _ANY}
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
        self._waiting: dict[bytes, list[tuple[bytes, int]]] = {}
        """The other rules, by their last label: most hosts have one of a few, and all rules take 15 milliseconds."""
        self._known: dict[bytes, Depths] = {}
        """The depths of hosts by what they share with a rule, which is all that decides."""
        self._encoded: list[tuple[str, int]] = []
        """Rules that are not ASCII. Encoding them takes as long as reading all others, and few hosts need them."""
        registry = 1
        for line in lines:
            if line.startswith("//"):
                if line.startswith((_BEGIN, _END)):
                    registry = 1 + _REGISTRY if line.startswith(_BEGIN) else 1
            elif words := line.split(None, 1):
                self._add(words[0], registry)

    def _add(self, rule: str, registry: int) -> None:
        name, kind = rule, _KINDS.get(rule[0], _PLAIN)
        if kind != _PLAIN:
            name = rule.lstrip("!*").lstrip(".")
        if name.isascii():
            label = name[name.rfind(".") + 1 :].encode()
            self._waiting.setdefault(label, []).append((name.encode(), kind * registry))
        else:
            self._encoded.append((name, kind * registry))

    def _insert(self, name: bytes, bits: int) -> None:
        rules = self._rules
        *first, last = accumulate(name.split(b".")[::-1], lambda before, label: b"%b,%b" % (before, label))
        for inner in first:
            rules.setdefault(inner, 0)
        rules[last] = rules.get(last, 0) | bits

    def _insert_encoded(self) -> None:
        for name, bits in self._encoded:
            encoded = name.encode("idna")
            self._insert_below(encoded[encoded.rfind(b".") + 1 :])
            self._insert(encoded, bits)
        self._encoded, self._known = [], {}

    def _insert_below(self, label: bytes) -> bool:
        """Insert the rules of a last label that wait; whether there are any."""
        found = self._waiting.pop(label, [])
        for name, bits in found:
            self._insert(name, bits)
        return bool(found)

    def depths(self, host: bytes) -> Depths:
        """The public suffixes of a host, which is reversed as in keys.

        >>> suffixes = PublicSuffixes([_BEGIN, "com", "*.ck", "!www.ck", _END, "blogspot.com"])
        >>> [tuple(suffixes.depths(host)) for host in (b"com,blogspot,a", b"ck,a,b", b"ck,www", b"ck", b"new,a")]
        [(1, 2), (2, 2), (1, 1), (1, 1), (0, 0)]
        """
        return self._find(host)[0]

    def _find(self, host: bytes) -> tuple[Depths, int, int]:
        """The depths of a host, and the ends of what it shares with a rule, or with a start of one, and of the next label.

        Whole labels only. The second is -1 if the host ends there.
        """
        if self._encoded and b"xn--" in host:
            self._insert_encoded()
        rules, end, stop = self._rules, 0, host.find(b",")
        while stop >= 0 and host[:stop] in rules:
            end, stop = stop, host.find(b",", stop + 1)
        if stop < 0 and host in rules:
            return self._depths_of(host), len(host), -1
        if not end and self._insert_below(host.partition(b",")[0]):
            return self._find(host)
        found = self._known.get(host[:end])
        if found is None:
            found = self._known[host[:end]] = self._depths_of(host)
        return found, end, stop

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
        depths, end, stop = self._find(host)
        if 0 < end < len(host) and depths.private == host.count(b",", 0, end) + 1:  # nearly all hosts
            return host if stop < 0 else host[:stop]
        depth = depths.private or 1
        labels = host.split(b",", depth + 1)
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
