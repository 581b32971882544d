"""samplecdxjob.py, dosample.py and seqfileutils.py: fair split points, the same from every engine."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import UsageError
from cdxmill.jobs.nodes.files import read_inputs
from cdxmill.jobs.nodes.sample import parse_points, pick_points, sample_files, share_of_sample
from cdxmill.jobs.nodes.task_context import TaskRun
from tests.conftest import RunCdxmill
from tests.jobs.conftest import RunJob, page_line, run_task, work_list

LARGE, SMALL = 20_000, 200
SAMPLED = 1010
SEEDS = 12


@pytest.fixture(scope="module")
def two_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One of 20,000 lines and one of 200; of 450 bytes each, so that each file has a mapper's reservoir of its own."""
    directory = tmp_path_factory.mktemp("two")
    pages = [page_line(number) for number in range(LARGE + SMALL)]
    large, small = directory / "large.cdxj", directory / "small.cdxj"
    large.write_bytes(b"\n".join(pages[:LARGE]) + b"\n")
    small.write_bytes(b"\n".join(line.replace(b"page", b"small") for line in pages[LARGE:]) + b"\n")
    return [large, small]


def small_share_holds(counts: list[int]) -> None:
    """Sampling SAMPLED of all lines takes 10 of the small file, with a standard deviation of 3.1.

    A sampler that draws as many from each input as it keeps takes all 200 of them.
    """
    mean = SAMPLED * SMALL / (LARGE + SMALL)
    deviation = (mean * (1 - SMALL / (LARGE + SMALL)) * (1 - SAMPLED / (LARGE + SMALL))) ** 0.5
    assert abs(sum(counts) / len(counts) - mean) < 4 * deviation / len(counts) ** 0.5
    assert all(abs(count - mean) < 5 * deviation for count in counts)
    assert len(set(counts)) > 1, "other seeds, other samples"


def test_the_job_gives_each_line_the_same_chance_for_files_of_any_size(two_files: list[Path]) -> None:
    from cdxmill.jobs.sample_job import SampleCDXJob

    counts = []
    for seed in range(SEEDS):
        # one sample a shard: the split points are then the sampled keys themselves, but for the first
        options = [
            "--no-conf",
            "-r",
            "inline",
            "--shards",
            str(SAMPLED),
            "--scaler",
            "1",
            "--seed",
            str(seed),
        ]
        with SampleCDXJob([*options, *map(str, two_files)]).make_runner() as runner:
            runner.run()
            points = parse_points(b"".join(runner.cat_output()))
        assert len(points) == SAMPLED - 1
        counts.append(sum(b"small" in point for point in points))
    small_share_holds(counts)


def sampled(work: Path | bytes, directory: Path, size: int, seed: str = "0:0", mappers: int = 1) -> bytes:
    """What a mapper of this file, or of this text, sends. It runs in this process, for there are many of them."""
    task = {"seed": seed, "size": share_of_sample(size, mappers)}
    data = (
        work_list(directory, work, **task)
        if isinstance(work, bytes)
        else json.dumps({"paths": [work.as_uri()], **task}).encode()
    )
    sent = BytesIO()
    sample_files(size, read_inputs, TaskRun(BytesIO(data), sent, BytesIO(), directory))
    return sent.getvalue()


def picked(sent: list[bytes], directory: Path, size: int) -> list[bytes]:
    """The split points of the reducer, in this process: one sample a shard."""
    points = BytesIO()
    pick_points(size, size, TaskRun(BytesIO(b"".join(sent)), points, BytesIO(), directory))
    return parse_points(points.getvalue())


def test_tasks_on_nodes_are_as_fair(two_files: list[Path], tmp_path: Path) -> None:
    counts = []
    for seed in range(SEEDS):
        mappers = [
            sampled(path, tmp_path, SAMPLED, f"{seed}:{number}") for number, path in enumerate(two_files)
        ]
        counts.append(sum(b"small" in point for point in picked(mappers, tmp_path, SAMPLED)))
    small_share_holds(counts)


@pytest.mark.parametrize("mappers", [1, 3, 7])
def test_the_number_of_mappers_does_not_change_the_split_points(
    mappers: int, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """They are those of `cdxmill sample` with the same seed, whatever the names of the files are on the nodes."""
    files = [b"".join(page_line(page) + b"\n" for page in range(number, 9000, 7)) for number in range(7)]
    for number, text in enumerate(files):
        (tmp_path / f"{number}.cdxj").write_bytes(text)
    done = run_cdxmill(
        "sample", "-s", "5", "--seed", "3", "-o", tmp_path / "ours.txt", *tmp_path.glob("*.cdxj")
    )
    assert done.returncode == 0, done.stderr
    sent = []
    for mapper in range(mappers):
        task = {"seed": "3", "size": share_of_sample(2000, mappers)}
        data = work_list(tmp_path, *files[mapper::mappers], **task)
        sent.append(run_task("sample", "--size", "2000", data=data))
    output = run_task("points", "--size", "2000", "--shards", "5", data=b"".join(sent))
    assert parse_points(output) == (tmp_path / "ours.txt").read_bytes().splitlines()


def test_many_mappers_send_their_share_and_are_as_fair(two_files: list[Path], tmp_path: Path) -> None:
    """Twenty mappers of 1000 lines, one of 200: each sends 1000 at the most of 5000."""
    large, small = (path.read_bytes().splitlines(keepends=True) for path in two_files)
    pieces = [*(large[start : start + 1000] for start in range(0, LARGE, 1000)), small]
    sent = [
        sampled(b"".join(piece), tmp_path, 5000, f"0:{number}", 21) for number, piece in enumerate(pieces)
    ]
    assert max(output.count(b"\n") for output in sent) <= 1001
    points = picked(sent, tmp_path, 5000)
    expected = len(points) * SMALL / (LARGE + SMALL)
    assert 4000 < len(points) < 5000
    assert abs(sum(b"small" in point for point in points) - expected) < 5 * expected**0.5


def test_a_mapper_that_sent_too_few_bounds_the_sample_but_biases_nothing(tmp_path: Path) -> None:
    """One of forty mappers has nine tenths of the lines; of its lines no more are kept than their share."""
    many = [b"a%06d 2020 x\n" % number for number in range(36_000)]
    few = [b"b%06d 2020 x\n" % number for number in range(4_000)]
    pieces = [many, *(few[start : start + 100] for start in range(0, 4000, 100))]
    sent = [
        sampled(b"".join(piece), tmp_path, 20_000, f"0:{number}", 41) for number, piece in enumerate(pieces)
    ]
    points = picked(sent, tmp_path, 20_000)
    share = sum(point.startswith(b"b") for point in points) / len(points)
    assert 1500 < len(points) < 3000
    assert abs(share - 0.1) < 5 * (0.1 * 0.9 / len(points)) ** 0.5


def test_keys_with_any_bytes_pass_the_shuffle(tmp_path: Path) -> None:
    keys = [b"a\tb 2020", b"c\rd 2020", b"\xff\1 2021", b"z 2020"]
    data = b"".join(key + b" {}\n" for key in keys)
    output = run_task(
        "points",
        "--size",
        "9",
        "--shards",
        "4",
        data=run_task("sample", "--size", "9", data=work_list(tmp_path, data, seed="0:0", size=9)),
    )
    assert parse_points(output) == sorted(keys)[1:]


@pytest.mark.parametrize("pages", [300, 30_000])
def test_split_points_equal_those_of_cdxmill_sample(
    pages: int, tmp_path: Path, run_cdxmill: RunCdxmill, run_job: RunJob
) -> None:
    """Of few lines all have a priority drawn; of many, some are passed over."""
    sound = [tmp_path / f"{number}.cdxj" for number in range(3)]
    for number, path in enumerate(sound):
        lines = (page_line(page)[:-1] + b" " * 80 + b"}\n" for page in range(number, 3 * pages, 3))
        path.write_bytes(b"".join(lines))
    ours = run_cdxmill("sample", "-s", "9", "--seed", "5", "-o", tmp_path / "ours.txt", *sound)
    assert ours.returncode == 0, ours.stderr
    places = ["--splitfile", tmp_path / "job.seq"]
    job = run_job("dosample", "local", "--num-cores", "2", "--shards", "9", "--seed", "5", *places, *sound)
    assert (job.returncode, job.stdout, job.stderr) == (0, b"", b"")
    assert (tmp_path / "job.txt").read_bytes() == (tmp_path / "ours.txt").read_bytes()
    assert (tmp_path / "job.seq").read_bytes() == (tmp_path / "ours.seq").read_bytes()
    assert (tmp_path / "ours.txt").read_bytes().count(b"\n") == 8


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_split_points_equal_those_of_cdxmill_sample_if_gzip_and_plain_files_are_mixed(
    order: list[int], tmp_path: Path, run_cdxmill: RunCdxmill, run_job: RunJob
) -> None:
    """The number of lines is guessed from the largest files, wrongly: all lines are then sampled once more."""
    files = [tmp_path / name for name in ("0.cdxj", "1.cdxj.gz", "2.cdxj.gz", "3.cdxj")]
    for number, path in enumerate(files):
        pages = 1_000 if number in (1, 2) else 15_000
        text = b"".join(page_line(page) + b"\n" for page in range(number, 4 * pages, 4))
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    named = [files[number] for number in order]
    ours = []
    for processes in ("1", "3"):
        options = ["--shards", "30", "--seed", "7", "-p", processes, "-o", tmp_path / f"{processes}.txt"]
        assert run_cdxmill("sample", *options, *named).returncode == 0
        ours.append((tmp_path / f"{processes}.txt").read_bytes())
    for runner in ("local", "inline"):
        options = ["--shards", "30", "--seed", "7", "--splitfile", tmp_path / f"{runner}.seq"]
        job = run_job("dosample", runner, *options, *named)
        assert (job.returncode, job.stderr) == (0, b"")
        ours.append((tmp_path / f"{runner}.txt").read_bytes())
    assert len(set(ours)) == 1
    assert ours[0].count(b"\n") == 29


def test_dosample_writes_splits_seq_and_txt_in_its_working_directory_and_reports_bad_inputs(
    tmp_path: Path, run_job: RunJob
) -> None:
    (tmp_path / "a.cdx").write_bytes(b"a 1 x\nb 2 x\nb 2 x\n")
    job = run_job("dosample", "inline", "--shards", "5", "a.cdx", "absent.cdx", cwd=tmp_path)
    assert job.returncode == 1
    assert sorted(job.stderr.splitlines()) == [
        b"absent.cdx: cannot be read (No such file or directory); check the path",
        b"note: 2 shards, not 5: too few keys",
    ]
    assert (tmp_path / "splits.txt").read_bytes() == b"b 2\n"
    assert (tmp_path / "splits.seq").read_bytes().startswith(b"SEQ\x06")


def test_no_lines_give_no_split_points(tmp_path: Path, run_job: RunJob) -> None:
    (tmp_path / "a.cdx").write_bytes(b" CDX N b a\n\n")
    job = run_job("samplecdxjob", "inline", "--shards", "2", "a.cdx", cwd=tmp_path)
    assert (job.returncode, job.stdout) == (0, b"")


def test_seqfileutils_converts_either_way_and_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.seqfileutils import main

    text, seq, back = (str(tmp_path / name) for name in ("splits.txt", "splits.seq", "back.txt"))
    points = b"com,a)/ 2020\ncom,b)/ 2021 {whole line}\n\xff\t1\n"
    Path(text).write_bytes(points)
    assert main(["--copyfrom", text, seq]) == 0
    assert main(["--copyfrom", seq, back]) == 0
    assert Path(back).read_bytes() == points
    assert [main(["--count", seq]), main(["--count", text])] == [0, 0]
    assert capsys.readouterr().out == "3\n3\n"


def test_seqfileutils_refuses_split_points_that_do_not_increase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs.seqfileutils import main

    (tmp_path / "splits.txt").write_bytes(b"b\na\n")
    assert main(["--copyfrom", str(tmp_path / "splits.txt"), str(tmp_path / "splits.seq")]) == 2
    assert "split points must increase" in capsys.readouterr().err
    assert not (tmp_path / "splits.seq").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["x.seq"], "one of the arguments --copyfrom --count is required"),
        (["--count", "--copyfrom", "a.txt", "x.seq"], "not allowed with"),
    ],
)
def test_seqfileutils_does_one_thing(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    from cdxmill.jobs.seqfileutils import main

    with pytest.raises(SystemExit) as ended:
        main(words)
    assert (ended.value.code, told in capsys.readouterr().err) == (2, True)


def test_no_script_writes_to_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cdxmill.jobs import seqfileutils
    from cdxmill.jobs.sample_job import SampleCDXJob, dosample

    monkeypatch.chdir(tmp_path)
    for name in ("a.cdxj", "a.seq", "b.txt", "s.txt"):
        Path(name).write_bytes(page_line(1) + b"\n")
    assert main(["zipnum", "-q", "-s", "1", "-o", "c", "a.cdxj"]) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    given = ["--no-conf", "-r", "inline", "--shards", "2", "--replace"]
    for splits, cdx in (("a.cdxj", "a.cdxj"), ("a.txt", "a.seq"), ("b.seq", "b.txt")):
        job = SampleCDXJob([*given, "--splitfile", splits, cdx])
        with pytest.raises(UsageError, match="is an input"), job.make_runner() as runner:
            runner.run()
    assert seqfileutils.main(["--replace", "--copyfrom", "s.txt", "./s.txt"]) == 2
    cluster = ["--shards", "2", "--replace", "--splitfile", "c/cluster.idx", "--from-cluster", "c"]
    monkeypatch.setattr("sys.argv", ["dosample.py", *cluster])
    assert dosample() == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_split_files_that_exist_stay_unless_replace_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from cdxmill.jobs import seqfileutils
    from cdxmill.jobs.launcher.stream_job import launch
    from cdxmill.jobs.sample_job import SampleCDXJob, dosample

    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_text("".join(f"com,{name})/ 2020 {{}}\n" for name in "abcd"))
    Path("points.txt").write_text("b\nc\n")
    assert main(["zipnum", "-q", "-s", "2", "--numlines", "1", "-o", "c", "a.cdxj"]) == 0
    job = ["--no-conf", "-q", "-r", "inline", "--shards", "2", "--splitfile", "job.seq", "--no-cat-output"]

    def convert(*more: str) -> int:
        return seqfileutils.main([*more, "--copyfrom", "points.txt", "utils.seq"])

    def take(*more: str) -> int:
        words = ["--shards", "2", "--splitfile=cluster.seq", "--from-cluster=c", "--quiet", *more]
        monkeypatch.setattr("sys.argv", ["dosample.py", *words])
        return dosample()

    runs = {
        "job": lambda *more: launch(SampleCDXJob([*job, *more, "a.cdxj"])),
        "utils": convert,
        "cluster": take,
    }
    for name, run in runs.items():
        assert run() == 0
        written = Path(f"{name}.seq").read_bytes()
        Path(f"{name}.seq").write_bytes(b"mine")
        assert run() == 2
        assert Path(f"{name}.seq").read_bytes() == b"mine"
        assert run("--replace") == 0
        assert Path(f"{name}.seq").read_bytes() == written
    assert capfd.readouterr().err.count("use --replace") == 3
