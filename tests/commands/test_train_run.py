"""One run of `train-dictionary`: what is refused, what is used once, and what is left if an archive cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cdxmill.commands import train_dictionary as training
from cdxmill.commands.train_dictionary import Trained, _distinct, _is_statistics, _train, train_dictionary
from cdxmill.errors import StoppedError, UsageError
from cdxmill.formats.archives.zstd_dictionary import TooFewSamples
from cdxmill.inputs.named import Input, named_input
from cdxmill.options.packing import Training
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import locate
from cdxmill.tasks.measuring import Promise, Savings
from cdxmill.tasks.record_sampling import read_chosen


def member(number: int, of: int) -> bytes:
    words = [f"word{(number * step + of) % 97}" for step in range(80)]
    block = f"page {number} of {of}: {' '.join(words)}, and what all pages have in common".encode()
    head = (
        f"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:{of}-{number}>\r\n"
        f"WARC-Target-URI: http://a.b/{of}/{number}\r\nContent-Type: text/plain\r\n"
    )
    return gzip.compress(
        head.encode() + b"Content-Length: %d\r\n\r\n%b\r\n\r\n" % (len(block), block), mtime=0
    )


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a.warc.gz and b.warc.gz of forty records each."""
    monkeypatch.chdir(tmp_path)
    for of, name in enumerate("ab"):
        Path(f"{name}.warc.gz").write_bytes(b"".join(member(number, of) for number in range(40)))
    return tmp_path


class Told(Failures):
    """Failures that keep their notes."""

    def __init__(self) -> None:
        super().__init__(printed=False)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def named(*names: str) -> list[Input]:
    return [named_input(name, name) for name in names]


def trained(*names: str, told: Told | None = None, **options: Any) -> Trained:
    asked = Training([*names], **{"output": "d", "processes": 1, **options})
    asked.quiet = True
    return train_dictionary(named(*(names or ("a.warc.gz", "b.warc.gz"))), asked, told or Told())


def test_a_dictionary_and_its_statistics_are_written() -> None:
    found = trained(id=40000)
    data, said = Path("d").read_bytes(), json.loads(Path("d.json").read_bytes())
    assert Path("d.json").read_text() == json.dumps(said, indent=1)
    assert (found.output, found.number, found.size, found.level) == ("d", 40000, len(data), 6)
    assert zstandard.ZstdCompressionDict(data).dict_id() == 40000
    assert (said["id"], said["size"], said["level"], said["seed"], said["archives"]) == (
        40000,
        len(data),
        6,
        0,
        2,
    )
    assert found.by_file
    assert (found.trained_on, found.held_out) == (40, 40)
    assert said["training"]["records"] == 40
    ((kind, sums),) = said["training"]["kinds"].items()
    assert (kind, sums["records"]) == ("resource text/plain", 40)
    assert 0 < sums["bytes"] < said["training"]["bytes"], "without headers"
    assert said["held_out"]["records"] == 40
    (held,) = said["held_out"]["archives"]
    assert held in {"a.warc.gz", "b.warc.gz"}
    alone = trained("a.warc.gz", output="e")
    assert not alone.by_file
    assert json.loads(Path("e.json").read_bytes())["held_out"]["archives"] == []


STATISTICS = {"id": 1, "training": {}, "held_out": {}}


@pytest.mark.parametrize(
    ("content", "is_own"),
    [
        (json.dumps(STATISTICS), True),
        (json.dumps({**STATISTICS, "more": 1}), True),
        (json.dumps({"id": 1, "training": {}}), False),
        (json.dumps(["id", "training"]), False),
        ("5", False),
        ("null", False),
        ("{", False),
        (None, False),
    ],
)
def test_statistics_are_told_from_other_files(content: str | None, is_own: bool) -> None:
    if content is not None:
        Path("d.json").write_text(content)
    assert _is_statistics(locate("d.json")) is is_own


def test_what_is_there_stays_unless_it_was_left_by_a_killed_run() -> None:
    Path("d.json").write_text("mine")
    with pytest.raises(UsageError, match=r"d\.json"):
        trained()
    assert not Path("d").exists()
    Path("d.json").write_text(json.dumps(STATISTICS))
    trained()
    before = Path("d").read_bytes(), Path("d.json").read_bytes()
    with pytest.raises(UsageError, match="--replace"):
        trained()
    assert (Path("d").read_bytes(), Path("d.json").read_bytes()) == before
    Path("d.json").write_text("mine")
    trained(replace=True)
    assert (Path("d").read_bytes(), Path("d.json").read_bytes()) == before


@pytest.mark.parametrize(("output", "archive"), [("a.warc.gz", "a.warc.gz"), ("x", "x.json")])
def test_an_archive_is_never_an_output(output: str, archive: str) -> None:
    if archive == "x.json":
        Path(archive).write_bytes(Path("a.warc.gz").read_bytes())
    before = Path(archive).read_bytes()
    with pytest.raises(UsageError, match=f"{archive}: is an input"):
        trained(archive, output=output, replace=True)
    assert Path(archive).read_bytes() == before


def test_an_archive_that_is_named_twice_is_used_once(here: Path) -> None:
    told = Told()
    archives = named("a.warc.gz", "b.warc.gz", f"{here}/a.warc.gz", "./b.warc.gz")
    assert _distinct(archives, told) == archives[:2]
    assert told.notes == ["note: 2 archives named twice"]
    assert _distinct(archives[:2], told) == archives[:2]
    assert _distinct(archives[1:3], told) == archives[1:3]
    assert len(told.notes) == 1


def test_an_archive_with_the_records_of_another_is_not_used() -> None:
    Path("c.warc.gz").write_bytes(Path("a.warc.gz").read_bytes())
    told = Told()
    found = trained("a.warc.gz", "b.warc.gz", "c.warc.gz", told=told)
    assert told.notes == ["c.warc.gz: note: not used, because it has the same records as a.warc.gz"]
    assert (found.trained_on, found.held_out) == (40, 40)


SAMPLES = [gzip.decompress(member(number, 0)) for number in range(40)]


@pytest.mark.parametrize(
    ("samples", "kib", "size"),
    [
        (SAMPLES, 1024, sum(map(len, SAMPLES)) // 8),
        (SAMPLES, 1, 1024),
        (SAMPLES[:20], 1, 1024),
        (SAMPLES[:19], 1, None),
        ([b"small %d" % number for number in range(200)], 1, None),
    ],
)
def test_a_dictionary_is_an_eighth_of_its_samples_at_most(
    samples: list[bytes], kib: int, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[tuple[int, int]] = []

    def noting(given: list[bytes], most: int, level: int) -> bytes:
        assert given is samples
        sizes.append((most, level))
        return zstandard.train_dictionary(most, [*given], k=64, d=8).as_bytes()

    monkeypatch.setattr(training, "train", noting)
    options = Training("a", output="d", size=kib, level=3, id=50000)
    if size is None:
        with pytest.raises(UsageError, match=f"too few records to train on \\({len(samples)} records with"):
            _train(samples, options)
        assert sizes == []
        return
    found = _train(samples, options)
    assert sizes == [(size, 3)]
    assert zstandard.ZstdCompressionDict(found).dict_id() == 50000


@pytest.mark.parametrize(("total", "is_enough"), [(2047, False), (2048, True)])
def test_a_dictionary_has_256_bytes_at_least(
    total: int, is_enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = zstandard.train_dictionary(512, [*SAMPLES], k=64, d=8).as_bytes()
    monkeypatch.setattr(training, "train", lambda samples, size, level: made if size == 256 else b"")
    samples, options = [*[bytes(100)] * 19, bytes(total - 1900)], Training("a", output="d", id=50000)
    if is_enough:
        assert len(_train(samples, options)) == len(made)
        return
    with pytest.raises(UsageError, match="too few records to train on"):
        _train(samples, options)


@pytest.mark.parametrize(
    ("ratio", "unknown", "how", "lines"),
    [(1.0, 0.0, "0.0% smaller", 1), (1.001, 0.0, "0.1% larger", 1), (0.5, 0.02, "50.0% smaller", 2), (0.5, 0.019, "50.0% smaller", 1)],
)  # fmt: skip
def test_what_is_promised_is_rounded_and_has_its_doubts(
    ratio: float, unknown: float, how: str, lines: int
) -> None:
    found = Trained("d", 1, 2, 3, 4, 5, False, Savings(9, 8, 7, 6), Promise(ratio, unknown), 10)
    promised = [*found._promised()]
    assert (how in promised[0], len(promised)) == (True, lines)


def test_samples_of_which_no_dictionary_can_be_made_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> bytes:
        raise TooFewSamples("all the same")

    monkeypatch.setattr(training, "train", fail)
    with pytest.raises(UsageError) as raised:
        _train([bytes(512)] * 40, Training("a", output="d", size=1))
    why = "no dictionary can be made of 40 records with 20.0 KiB (all the same); give more archives"
    assert str(raised.value) == why


@pytest.mark.parametrize("moment", [0, 1])
def test_without_an_archive_that_may_be_whole_nothing_is_written(
    moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first records that are read are for training, the others for measuring."""
    calls = list[int]()

    def failing(archives: Any, chosen: Any, work: Any, failures: Failures) -> Any:
        calls.append(len(chosen))
        if len(calls) == moment + 1:
            failures.report(Failure("a.warc.gz", None, "does not answer", is_outage=True))
        return read_chosen(archives, chosen, work, failures)

    monkeypatch.setattr(training, "read_chosen", failing)
    with pytest.raises(StoppedError) as raised:
        trained()
    assert str(raised.value) == "d: not written, because an archive could not be read; run it again"
    assert len(calls) == moment + 1
    assert not Path("d").exists()
    assert not Path("d.json").exists()
