"""A report is compared with another one: that of files, or one that was written as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands.reporting import report as module
from cdxmill.commands.reporting.report import (
    find_inputs,
    make_report,
    read_report,
    report_asked,
)
from cdxmill.errors import OutageError, StoppedError, UsageError
from tests.commands.test_report_asked import asked, quiet, reported
from tests.material.cdx_files import write_plain
from tests.material.clusters import write_raw_cluster

LINE = b'com,a)/%04d 20200101000000 {"url": "http://a.com/", "length": "%d"}'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the cluster C, and the CDX files a.cdxj and b.cdxj."""
    monkeypatch.chdir(tmp_path)
    write_raw_cluster(tmp_path / "C", [LINE % (row, 7) for row in range(2)], 1)
    for number, name in enumerate("ab"):
        write_plain(tmp_path / f"{name}.cdxj", [LINE % (row + number, 9) for row in range(3)])
    return tmp_path


def test_reports_are_compared_with_files_and_with_json() -> None:
    reported("b.cdxj", json="old.json")
    for other in ("b.cdxj", "old.json", Path("b.cdxj")):
        found = reported("a.cdxj", "C", compare=other)["compared"]
        assert found["with"] == ["b.cdxj"]
        assert found["totals"]["captures"] == {"before": 3, "now": 5}
    assert "compared" not in reported("a.cdxj")


@pytest.mark.parametrize(
    ("other", "kind", "message"),
    [
        ("absent.json", UsageError, "absent.json: cannot be read as a report (No such file or directory)"),
        ("odd.json", UsageError, "odd.json: cannot be read as a report (it is not JSON)"),
        ("deep.json", UsageError, "deep.json: cannot be read as a report (it is not JSON)"),
        ("list.json", UsageError, "list.json: is not the JSON of cdxmill report, format 1"),
        ("bad.cdxj", UsageError, "--compare bad.cdxj: no input can be read"),
        ("absent", UsageError, "absent"),
    ],
)
def test_what_is_no_report_is_refused(other: str, kind: type[Exception], message: str, here: Path) -> None:
    Path("odd.json").write_bytes(b"\xff{")
    Path("deep.json").write_bytes(b"[" * 100_000)
    Path("list.json").write_bytes(b"[1]")
    write_plain(here / "bad.cdxj", [b'com,b)/ 2020 {"mime": }'])
    with pytest.raises(kind) as found:
        reported("a.cdxj", compare=other)
    assert message in str(found.value)


def test_a_machine_at_fault_stops_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    def outage(*_: object) -> Any:
        raise OutageError("b.cdxj", "no answer")

    monkeypatch.setattr(module, "find_inputs", outage)
    with pytest.raises(StoppedError, match=r"--compare b\.cdxj: no answer"):
        module._other("b.cdxj", [], asked("a.cdxj"), quiet())


@pytest.mark.parametrize("option", ["html", "json"])
@pytest.mark.parametrize("other", ["b.cdxj", "old.json"])
def test_what_is_compared_is_not_replaced(other: str, option: str) -> None:
    reported("b.cdxj", json="old.json")
    before = Path(other).read_bytes()
    with pytest.raises(UsageError, match=f"{other}: is an input"):
        reported("a.cdxj", compare=other, replace=True, **{option: other})
    with pytest.raises(UsageError, match=r"a\.cdxj: is an input"):
        reported("a.cdxj", replace=True, **{option: "a.cdxj"})
    assert Path(other).read_bytes() == before
    reported("a.cdxj", compare=other, **{option: "new"})
    assert Path("new").exists()


def test_a_report_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    reported("b.cdxj", json="old.json")
    size = Path("old.json").stat().st_size
    monkeypatch.setattr(module, "_HEAD", size)
    assert read_report("old.json")["inputs"] == ["b.cdxj"]
    monkeypatch.setattr(module, "_HEAD", size // 2)
    with pytest.raises(UsageError, match="it is not JSON"):
        read_report("old.json")


def test_a_report_of_other_inputs_counts_its_own_failures() -> None:
    data = bytearray(Path("C/cdx-00000.gz").read_bytes())
    data[20] ^= 255
    Path("C/cdx-00000.gz").write_bytes(data)
    failures = quiet()
    report_asked(asked("a.cdxj", compare="C"), failures)
    assert failures.count == 1
    assert (
        make_report(find_inputs(["a.cdxj"], failures), asked("a.cdxj"), failures)["failures"]["number"] == 1
    )
