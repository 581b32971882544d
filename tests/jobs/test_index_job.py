"""indexwarcsjob.py writes what `cdxmill index --manifest` writes. A corrupt archive does not affect others."""

from __future__ import annotations

import gzip
import json
import os
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands.test_index_failures import records_of
from tests.conftest import RunCdxmill
from tests.jobs.conftest import RunJob
from tests.material.wacz_files import make_wacz


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path) -> Path:
    """Two good archives, one truncated in its last record, one that is missing. The archives are beside the manifest."""
    directory = tmp_path_factory.mktemp("archives")
    (directory / "crawl").mkdir()
    for name in ("example.warc.gz", "iana.warc.gz"):
        (directory / "crawl" / name).write_bytes((pywb_warcs / name).read_bytes())
    whole = (pywb_warcs / "example.warc.gz").read_bytes()
    (directory / "crawl/cut.warc.gz").write_bytes(whole[:-10])
    rows = [
        "# archives",
        "",
        "x\t1\tcrawl/example.warc.gz",
        "crawl/cut.warc.gz",
        "crawl/absent, or not.warc.gz",
    ]
    # two gzip members: mrjob's own reader would read only the first
    members = ["\n".join([*rows, ""]), "crawl/iana.warc.gz"]
    (directory / "warc.paths.gz").write_bytes(b"".join(gzip.compress(member.encode()) for member in members))
    return directory / "warc.paths.gz"


class Indexes(NamedTuple):
    """What `cdxmill index` and the job wrote, and how the job ended."""

    expected: Path
    built: Path
    status: int
    stdout: list[str]
    stderr: list[str]
    prefix: str


@pytest.fixture(scope="module", params=["inline", "local"])
def indexes(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    manifest: Path,
    run_cdxmill: RunCdxmill,
    run_job: RunJob,
) -> Indexes:
    """Inline with relative paths, from the archives' folder; local with --warc_bucket, from another one."""
    directory = tmp_path_factory.mktemp(request.param)
    is_local = request.param == "local"
    home = directory if is_local else manifest.parent
    root = ["--root", str(manifest.parent)] if is_local else []
    ours = run_cdxmill("index", "-p", "1", "-o", directory / "a", "--manifest", manifest, *root, cwd=home)
    assert ours.returncode == 1, ours.stderr
    options = ["--warc_bucket", str(manifest.parent), "--s3_local_temp_dir", directory] if is_local else []
    done = run_job(
        "indexwarcsjob", request.param, "--cdx_bucket", directory / "b", *options, manifest, cwd=home
    )
    told = done.stdout.decode().splitlines(), done.stderr.decode().splitlines()
    return Indexes(
        directory / "a", directory / "b", done.returncode, *told, f"{manifest.parent}/" if is_local else ""
    )


def test_the_job_writes_what_cdxmill_index_writes(indexes: Indexes) -> None:
    expected = {
        path.relative_to(indexes.expected): path.read_bytes() for path in files_below(indexes.expected)
    }
    built = {path.relative_to(indexes.built): path.read_bytes() for path in files_below(indexes.built)}
    for record, times in (("failures.tsv", 0), (".outputs.tsv", 1)):
        ours, theirs = (
            sorted(line.split(b"\t")[: -times or None] for line in found.pop(Path(record)).splitlines())
            for found in (built, expected)
        )
        assert ours == theirs
    names = sorted(path.name for path in expected)
    assert names == ["cut.cdx.gz", "example.cdx.gz", "iana.cdx.gz"]
    assert built == expected


def files_below(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_a_failure_is_an_output_line_and_a_message_and_the_rest_is_indexed(indexes: Indexes) -> None:
    assert indexes.status == 1
    absent, cut = sorted(indexes.stdout)
    assert (
        absent == f"{indexes.prefix}crawl/absent, or not.warc.gz\tcannot be read (No such file or directory)"
    )
    assert cut.startswith(f"{indexes.prefix}crawl/cut.warc.gz\tat ")
    assert "the file is truncated inside a gzip" in cut
    told_absent, told_cut = sorted(indexes.stderr)
    assert told_absent.startswith(f"{indexes.prefix}crawl/absent, or not.warc.gz: cannot be read (")
    assert told_cut.startswith(f"{indexes.prefix}crawl/cut.warc.gz@")
    assert told_cut.endswith("; fetch the file again")
    lines = [gzip.decompress(path.read_bytes()).count(b"\n") for path in indexes.built.rglob("*.cdx.gz")]
    assert min(lines) > 0


def test_finished_outputs_are_kept_and_failed_ones_are_tried_again(indexes: Indexes, manifest: Path) -> None:
    from cdxmill.jobs.index_job import IndexWARCJob

    options = ["--cdx_bucket", str(indexes.built), "--warc_bucket", indexes.prefix, str(manifest)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(manifest.parent)
        assert sorted(names_of_work(IndexWARCJob([*options, "--replace"]))) == [
            "absent, or not.warc.gz",
            "cut.warc.gz",
            "example.warc.gz",
            "iana.warc.gz",
        ]
        (indexes.built / "failures.tsv").write_text(f"{manifest.parent}/crawl/cut.warc.gz\t9\tcut\t\n")
        left = sorted(names_of_work(IndexWARCJob(options)))
    assert left == ["absent, or not.warc.gz", "cut.warc.gz"]


def names_of_work(job: object) -> list[str]:
    work = job.list_work()  # type: ignore[attr-defined]
    return [os.path.basename(item["archive"][0]) for item in work]  # noqa: PTH119


@pytest.mark.parametrize(
    ("listed", "options", "reason"),
    [
        (
            "a.warc.gz\n./a.warc.gz\n",
            ["--cdx_bucket", "out"],
            "would get the same output name a.warc.gz.cdx.gz",
        ),
        ("/x/a.warc.gz\n/y/a.warc.gz\n", ["--cdx_bucket", "out"], "would both have the file name a.warc.gz"),
        ("a.warc.gz\n", [], "--cdx_bucket"),
    ],
)
def test_wrong_usage_is_reported_before_any_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    listed: str,
    options: list[str],
    reason: str,
) -> None:
    from cdxmill.jobs.index_job import IndexWARCJob
    from cdxmill.jobs.launcher.stream_job import launch

    monkeypatch.chdir(tmp_path)
    Path("m.txt").write_text(listed)
    assert launch(IndexWARCJob(["--no-conf", *options, "m.txt"])) == 2
    assert reason in capsys.readouterr().err
    assert not Path("out").exists()


@pytest.fixture
def crawl(pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two archives and a manifest of them in the current directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("example.warc.gz", "iana.warc.gz"):
        (tmp_path / name).write_bytes((pywb_warcs / name).read_bytes())
        os.utime(name, (5, 5))
    Path("m.txt").write_text("example.warc.gz\niana.warc.gz\n")
    return tmp_path


def launched(*options: str) -> int:
    from cdxmill.jobs.index_job import IndexWARCJob
    from cdxmill.jobs.launcher.stream_job import launch

    arguments = ["--no-conf", "-r", "inline", "--cdx_bucket", "out", "--quiet", *options, "m.txt"]
    return launch(IndexWARCJob(arguments))


def outputs() -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("out").glob("*.cdx.gz")}


def test_the_names_of_the_outputs_are_on_the_disk_at_the_end(
    crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut after the job loses none, as after the command."""
    synced, fsync = [], os.fsync

    def note_sync(handle: int) -> None:
        synced.append(os.path.realpath(f"/proc/self/fd/{handle}"))
        fsync(handle)

    Path("below").mkdir()
    Path("iana.warc.gz").rename("below/iana.warc.gz")
    Path("m.txt").write_text("below/iana.warc.gz\n")
    monkeypatch.setattr(os, "fsync", note_sync)
    assert launched("--warc_bucket", ".") == 0
    assert str(crawl / "out/below") in synced


def test_an_archive_is_never_replaced_by_an_output(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    for name in ("iana.warc.gz", "iana.cdx.gz"):
        Path("out", name).write_bytes(Path("iana.warc.gz").read_bytes())
    Path("m.txt").write_text("iana.warc.gz\niana.cdx.gz\n")
    before = Path("out/iana.cdx.gz").read_bytes()
    assert launched("--replace", "--warc_bucket", "out") == 2
    assert "is an input; choose another output" in capsys.readouterr().err
    assert Path("out/iana.cdx.gz").read_bytes() == before


def test_finished_outputs_are_kept_and_replaced_on_request(crawl: Path) -> None:
    assert launched() == 0
    before = outputs()
    assert len(before) == 2
    assert launched() == launched("--skip-existing") == 0
    assert outputs() == before
    assert launched("--replace") == 0
    after = outputs()
    assert {name: content for name, (content, _) in after.items()} == {
        name: content for name, (content, _) in before.items()
    }
    assert all(after[name][1] > before[name][1] for name in before)


def test_an_output_of_another_archive_is_refused(
    crawl: Path, capfd: pytest.CaptureFixture[str], run_cdxmill: RunCdxmill
) -> None:
    assert launched() == 0
    before = outputs()
    Path("example.warc.gz").rename("example.arc.gz")
    Path("m.txt").write_text("example.arc.gz\n")
    capfd.readouterr()
    assert launched() == 2
    job = capfd.readouterr().err
    done = run_cdxmill("index", "-o", "out", "--update", "--manifest", "m.txt", cwd=crawl)
    assert done.returncode == 2
    assert done.stderr.decode() == f"cdxmill: {job}", "the same words"
    assert outputs() == before
    assert not Path("out/.lock").exists()


def test_failures_of_other_archives_are_not_forgotten(crawl: Path) -> None:
    whole = Path("iana.warc.gz").read_bytes()
    Path("iana.warc.gz").write_bytes(whole[:5000])
    assert launched() == 1
    Path("m.txt").write_text("example.warc.gz\n")
    assert launched("--replace") == 0
    assert Path("out/failures.tsv").read_text().startswith(f"{crawl}/iana.warc.gz\t")
    Path("m.txt").write_text("./iana.warc.gz\n")
    assert launched() == 1
    Path("iana.warc.gz").write_bytes(whole)
    assert launched() == 0
    assert not Path("out/failures.tsv").exists()


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_an_empty_archive_is_a_failure(runner: str, crawl: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("empty.warc.gz").touch()
    Path("m.txt").write_text("example.warc.gz\nempty.warc.gz\n")
    assert launched("-r", runner) == 1
    found = capfd.readouterr()
    assert "empty.warc.gz@0: the file is empty; fetch the file again" in found.err
    assert found.out == "empty.warc.gz\tat 0: the file is empty\n"
    assert "example.cdx.gz" in outputs()


def test_an_empty_archive_is_a_failure_on_a_node(crawl: Path) -> None:
    from cdxmill.inputs.named import Input
    from cdxmill.jobs.nodes.archives import ArchiveWork, index_archives
    from cdxmill.jobs.nodes.task_context import TaskRun
    from cdxmill.storage.location import Location

    Path("empty.warc.gz").touch()
    archive = Input(Location("empty.warc.gz"), "empty.warc.gz", "")
    item = ArchiveWork(archive, f"{crawl}/out/empty.cdx.gz", None).item()
    run = TaskRun(BytesIO(json.dumps(item).encode()), BytesIO(), BytesIO(), crawl)
    index_archives(run)
    output, reports = (
        stream.getvalue() for stream in (run.output, run.reports) if isinstance(stream, BytesIO)
    )
    assert output == b"empty.warc.gz\tat 0: the file is empty\tfetch the file again\n"
    assert b"reporter:counter:cdxmill,failed archives,1\n" in reports
    assert Path("out/_empty.cdx.gz.failures").exists()


def test_a_manifest_without_archives_is_wrong_usage(crawl: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("m.txt").write_text("# nothing\n")
    assert launched() == 2
    assert "no archives found" in capfd.readouterr().err
    assert not Path("out").exists()


def test_a_wacz_in_a_manifest_stands_for_its_archives(
    run_cdxmill: RunCdxmill, run_job: RunJob, pywb_warcs: Path, tmp_path: Path
) -> None:
    data = {
        f"archive/{name}": (pywb_warcs / name).read_bytes() for name in ("example.warc.gz", "iana.warc.gz")
    }
    (tmp_path / "x.wacz").write_bytes(make_wacz(data))
    (tmp_path / "list").write_text("x.wacz\n")
    ours = run_cdxmill("index", "-q", "-o", "a", "--manifest", "list", cwd=tmp_path)
    done = run_job("indexwarcsjob", "inline", "--cdx_bucket", "b", "list", cwd=tmp_path)
    assert (ours.returncode, done.returncode) == (0, 0), done.stderr
    for name in ("example.cdx.gz", "iana.cdx.gz"):
        expected = (tmp_path / "a/x.wacz/archive" / name).read_bytes()
        assert (tmp_path / "b/x.wacz/archive" / name).read_bytes() == expected


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_a_corrupt_wacz_costs_its_archives_only(
    run_cdxmill: RunCdxmill, run_job: RunJob, pywb_warcs: Path, tmp_path: Path, runner: str
) -> None:
    """The tasks open the WACZ files, and report what `cdxmill index` reports."""
    good = make_wacz(
        {"archive/a.warc.gz": (pywb_warcs / "iana.warc.gz").read_bytes(), "archive/x.har": b"{}"}
    )
    cut = make_wacz({"archive/cut.warc.gz": (pywb_warcs / "iana.warc.gz").read_bytes()[:2000]})
    kinds = {"good": good, "bad": b"PK", "none": make_wacz({"pages/x.jsonl": b""}), "in/cut": cut}
    (tmp_path / "in").mkdir()
    for name, data in kinds.items():
        (tmp_path / f"{name}.wacz").write_bytes(data)
    (tmp_path / "list").write_text("".join(f"{name}.wacz\n" for name in kinds) + "absent.wacz\n")
    ours = run_cdxmill("index", "-q", "-o", "a", "--manifest", "list", cwd=tmp_path)
    job = ("indexwarcsjob", runner, "--cdx_bucket", "b", "list")
    done = run_job(*job, cwd=tmp_path)
    assert (ours.returncode, done.returncode) == (1, 1), done.stderr
    assert cdx_below(tmp_path / "b") == cdx_below(tmp_path / "a")
    assert sorted(line.split(b"\t")[0] for line in done.stdout.splitlines()) == [
        *(b"absent.wacz", b"bad.wacz", b"in/cut.wacz/archive/cut.warc.gz", b"none.wacz")
    ]
    assert b"good.wacz: note: 1 file skipped: 1 .har\n" in done.stderr
    (tmp_path / "in/cut.wacz").write_bytes(good)
    (tmp_path / "bad.wacz").write_bytes(good)
    again = run_job(*job, "--max-failures", "50%", cwd=tmp_path)
    assert again.returncode == 0, "2 of 4: what is finished is skipped"
    assert not (tmp_path / "b/failures.tsv").exists()
    replaced = run_job(*job, "--replace", "--max-failures", "40%", cwd=tmp_path)
    assert replaced.returncode == 0, "2 of 5"


def cdx_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*.cdx.gz")}


def test_a_wacz_and_a_file_in_it_are_not_listed_both(run_job: RunJob, tmp_path: Path) -> None:
    (tmp_path / "x.wacz").write_bytes(make_wacz({"archive/a.warc.gz": b""}))
    (tmp_path / "list").write_text("x.wacz/archive/a.warc.gz\nx.wacz\n")
    done = run_job("indexwarcsjob", "inline", "--cdx_bucket", "b", "list", cwd=tmp_path)
    assert done.returncode == 2
    assert (
        b"list:1: x.wacz/archive/a.warc.gz: is listed twice, because its WACZ is listed, too" in done.stderr
    )


def test_outputs_of_other_archives_are_not_replaced_by_those_of_a_wacz(
    run_job: RunJob, pywb_warcs: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.wacz").write_bytes(
        make_wacz({"archive/a.warc.gz": (pywb_warcs / "iana.warc.gz").read_bytes()})
    )
    (tmp_path / "list").write_text("x.wacz\n")
    taken = tmp_path / "b/x.wacz/archive/a.cdx.gz"
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"mine")
    done = run_job("indexwarcsjob", "inline", "--cdx_bucket", "b", "list", cwd=tmp_path)
    assert (done.returncode, taken.read_bytes()) == (1, b"mine"), done.stderr
    assert b"x.wacz\t" in done.stdout


def test_notes_of_a_kind_are_counted_after_the_first_ten(run_job: RunJob, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.warc").write_bytes(records_of(30, b"never", b"1"))
    (tmp_path / "list").write_text("a.warc\nb.warc\n")
    done = run_job("indexwarcsjob", "inline", "--cdx_bucket", "b", "list", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    reason = b"missing or invalid date; the timestamp is -"
    assert done.stderr.count(b": note: " + reason) == 10
    assert b"note: 10 more notes of this kind: " + reason in done.stderr
