"""How much memory this process may use: that of the machine, or less in a container or a unit of systemd with a limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS, _LIMITS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def usable_memory(groups: Path = _GROUPS, limits: Path = _LIMITS) -> int:
    """Bytes. `groups` names the control groups of the process, `limits` is the directory with their limits (cgroups(7))."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *_limits(groups, limits)])


def _limits(groups: Path, limits: Path) -> Iterator[int]:
    """The limits of the groups of the process, and of those that they are in."""
    named = groups.read_text().splitlines() if groups.exists() else []
    for _, kinds, path in (line.split(":", 2) for line in named):
        if kinds not in ("", "memory"):
            continue
        group = limits / kinds / path.strip("/")
        for one in (group, *group.parents):
            with suppress(OSError, ValueError):  # ValueError: "max" is no limit
                yield int((one / ("memory.limit_in_bytes" if kinds else "memory.max")).read_text())
            if one == limits:
                break
