"""A short run of the rigs for CDX files and clusters. They run longer from the command line."""

from __future__ import annotations

from pathlib import Path

from . import cdx_mutants, cluster_flips


def test_a_damaged_cdx_file_is_reported_or_has_its_lines(tmp_path: Path) -> None:
    seen = cdx_mutants.run(1, 2_000, tmp_path)
    assert sum(seen.values()) == 2_000
    assert cdx_mutants.findings(seen) == 0, seen


def test_a_damaged_cluster_gives_its_lines_or_an_error(tmp_path: Path) -> None:
    seen = cluster_flips.run(1, 150, tmp_path)
    assert seen["trials"] > 140
    assert cluster_flips.findings(seen) == 0, seen
