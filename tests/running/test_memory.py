"""The memory that a process may use, in and without control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdxmill.running.memory import usable_memory

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
WITHOUT_LIMIT = str((1 << 63) - 4096)
"""What the first version of control groups says where there is no limit."""


def usable(directory: Path, groups: str, limits: dict[str, str]) -> int:
    (directory / "cgroup").write_text(groups)
    for name in ("memory.max", "memory.limit_in_bytes"):
        (directory / name).write_text("1")  # outside of the groups
    for name, text in limits.items():
        (directory / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "fs" / name).write_text(text + "\n")
    return usable_memory(directory / "cgroup", directory / "fs")


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": "1048576"}, 1 << 20),
        ("0::/a/b\n", {"a/memory.max": "4096", "a/b/memory.max": "max", "memory.max": "8192"}, 4096),
        ("0::/a:b\n", {"a:b/memory.max": "4096"}, 4096),
        ("0::/a\n", {"a/memory.max": "max"}, MACHINE),
        ("0::/a\n", {"memory.limit_in_bytes": "4096"}, MACHINE),
        ("5:cpu:/a\n4:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "4096"}, 4096),
        ("4:memory:/absent/b\n", {"memory/memory.limit_in_bytes": "4096"}, 4096),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": WITHOUT_LIMIT}, MACHINE),
        ("4:cpu:/a\n", {"cpu/a/memory.limit_in_bytes": "4096"}, MACHINE),
        ("0::/a\n", {"a/memory.max": str(MACHINE * 2)}, MACHINE),
        ("", {}, MACHINE),
    ],
)
def test_the_smallest_limit_counts(
    tmp_path: Path, groups: str, limits: dict[str, str], expected: int
) -> None:
    assert usable(tmp_path, groups, limits) == expected


def test_without_control_groups_it_is_that_of_the_machine(tmp_path: Path) -> None:
    assert usable_memory(tmp_path / "absent", tmp_path / "fs") == MACHINE
    assert 0 < usable_memory() <= MACHINE
