"""For all samples, the fields of cdxmill's lines equal those of pywb and cdxj-indexer.

If the two agree, cdxmill agrees with them. If they differ, it agrees with one of them by a named rule.
"""

from __future__ import annotations

import hashlib

import pytest

from .archives import ARCHIVES, SAMPLES, Archive
from .rules import RULES
from .seen import is_sound
from .survey import DAMAGE, Survey

needs_samples = pytest.mark.skipif(
    not SAMPLES.exists(), reason="needs the sample archives, see CONTRIBUTING.md"
)


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_cdxmill_agrees_with_both_peers_or_with_one_by_rule(archive: Archive, surveyed: Survey) -> None:
    unexplained = [one for one in surveyed.verdicts[archive.name].differences if not one.explained]
    assert unexplained == []


def test_the_exit_status_is_1_if_damage_was_found(surveyed: Survey) -> None:
    reports = [report for ours in surveyed.run.answers.values() for report in ours.reports]
    assert surveyed.run.status == int(not all(report.is_note for report in reports))


def test_every_message_of_cdxmill_names_its_file(surveyed: Survey) -> None:
    assert surveyed.run.strange == []


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_no_sound_record_is_reported_as_damage(archive: Archive, surveyed: Survey) -> None:
    aside = [one for one in surveyed.verdicts[archive.name].aside if one.reason == DAMAGE]
    assert [one for one in aside if is_sound(archive.path, one.offset, one.length)] == []


def test_most_records_are_compared(surveyed: Survey) -> None:
    verdicts = surveyed.verdicts.values()
    assert sum(one.compared for one in verdicts) > 5 * sum(len(one.aside) for one in verdicts)


def test_there_are_at_most_twenty_rules() -> None:
    assert len(RULES) <= 20
    assert len({rule.name for rule in RULES}) == len(RULES)


@needs_samples
@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_a_rule_decides_records_of_more_than_one_file(rule: str, surveyed: Survey) -> None:
    paths = [
        archive.path
        for archive in ARCHIVES
        if any(one.rule == rule and one.explained for one in surveyed.verdicts[archive.name].differences)
    ]
    contents = {hashlib.sha256(path.read_bytes()).digest() for path in paths}
    assert len(contents) > 1, f"{rule} is used for {len(contents)} files: {paths}"
