"""Launchers from settings to a cluster, on this machine's engine; what they say and how they end."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import ROOT, Finished, Launch, RunPaths, clean_environment, launch_in, lay_out, write_settings

pytestmark = pytest.mark.xdist_group("runs")  # a whole run is made once for all tests here
STEPS = ("runindexwarcs.sh", "runsample.sh", "runzipcluster.sh")


def shards(directory: Path) -> dict[str, bytes]:
    """The shards of a cluster, by name."""
    return {path.name: path.read_bytes() for path in directory.glob("cdx-*.gz")}


def last_line(stderr: str) -> str:
    """The last that a launcher says."""
    return stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path) -> RunPaths:
    """What a whole run has made. No test may change it."""
    directory = tmp_path_factory.mktemp("finished")
    made = lay_out(directory, pywb_warcs)
    done = launch_in(directory)("run_index_hadoop.sh", **made.settings)
    assert done.returncode == 0, done.stderr
    assert last_line(done.stderr).startswith("run_index_hadoop.sh: done (exit status 0)")
    return made


@pytest.fixture
def finished(finished_once: RunPaths, tmp_path: Path) -> RunPaths:
    """A copy of it, with the time of each file. Its archives are where they were: an index knows its archive."""
    for name in ("cdx", "cluster"):
        shutil.copytree(finished_once.directory / name, tmp_path / name)
    for name in ("splits.seq", "splits.txt"):
        shutil.copy2(finished_once.directory / name, tmp_path)
    return RunPaths(tmp_path, finished_once.archives)


@pytest.fixture(scope="module")
def by_steps(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path) -> tuple[RunPaths, list[Finished]]:
    """What the steps have made one by one, and what they said."""
    directory = tmp_path_factory.mktemp("steps")
    made, launch = lay_out(directory, pywb_warcs), launch_in(directory)
    return made, [launch(name, **made.settings) for name in STEPS]


def test_the_steps_one_by_one_and_all_at_once_make_the_same(
    by_steps: tuple[RunPaths, list[Finished]], finished_once: RunPaths
) -> None:
    made, steps = by_steps
    assert [last_line(done.stderr) for done in steps] == [
        "runindexwarcs.sh: done (exit status 0); next: bin/runsample.sh",
        "runsample.sh: done (exit status 0); next: bin/runzipcluster.sh",
        "runzipcluster.sh: done (exit status 0); next: bin/publish_index.sh",
    ]
    assert [done.returncode for done in steps] == [0, 0, 0]
    cluster = shards(made.directory / "cluster")
    assert sorted(cluster) == ["cdx-00000.gz", "cdx-00001.gz"]
    assert shards(finished_once.directory / "cluster") == cluster


def test_what_is_done_is_left_as_it_is(launch: Launch, by_steps: tuple[RunPaths, list[Finished]]) -> None:
    directory, settings = by_steps[0].directory, by_steps[0].settings
    made = [*(directory / "cdx").rglob("*.cdx.gz"), directory / "splits.seq"]
    before = [path.stat().st_mtime_ns for path in made]
    assert len(made) == 3
    done = launch("run_index_hadoop.sh", **settings)
    assert done.returncode == 0, done.stderr
    assert f"sample: skipped, because {directory}/splits.seq exists" in done.stderr
    assert [path.stat().st_mtime_ns for path in made] == before
    assert launch("run_index_hadoop.sh", "--replace", **settings).returncode == 0
    assert all(path.stat().st_mtime_ns > old for path, old in zip(made, before, strict=True))


def test_a_split_file_of_another_crawl_is_reused(launch: Launch, finished: RunPaths) -> None:
    directory = finished.directory
    settings = {name: value for name, value in finished.settings.items() if name != "SHARDS"}
    settings["ZIPNUM_CLUSTER_DIR"] = directory / "2026-44"
    (directory / "splits.seq").rename(directory / "old.seq")
    done = launch("run_index_hadoop.sh", "2026-44", "", directory / "old.seq", **settings)
    assert done.returncode == 0, done.stderr
    assert len(shards(directory / "2026-44")) == 2
    assert shards(directory / "2026-44") == shards(directory / "cluster")


@pytest.mark.parametrize("positional", [False, True])
def test_on_this_machine_no_split_file_is_needed(
    positional: bool, launch: Launch, finished: RunPaths
) -> None:
    directory = finished.directory
    settings = {name: value for name, value in finished.settings.items() if name != "SPLIT_FILE"}
    settings["ZIPNUM_CLUSTER_DIR"] = directory / "2026-44"
    words = ("2026-44", finished.settings["WARC_MANIFEST"]) if positional else ()
    done = launch("run_index_hadoop.sh", *words, **settings)
    assert done.returncode == 0, done.stderr
    assert "sample: skipped, because SPLIT_FILE is not set" in done.stderr
    assert len(shards(directory / "2026-44")) == 2
    assert shards(directory / "2026-44") == shards(directory / "cluster")


def test_inputs_that_failed_are_named_and_the_rest_is_done(launch: Launch, places: RunPaths) -> None:
    with (places.directory / "warcs.txt").open("a") as manifest:
        manifest.write("absent.warc.gz\n")
    step = launch("runindexwarcs.sh", **places.settings)
    assert step.returncode == 1
    assert "absent.warc.gz" in step.stderr
    assert "done, but some inputs failed (exit status 1)" in last_line(step.stderr)
    everything = launch("run_index_hadoop.sh", **places.settings)
    assert everything.returncode == 1
    assert "absent.warc.gz" in everything.stderr
    lines = b"".join(map(gzip.decompress, shards(places.directory / "cluster").values())).splitlines()
    assert len(lines) > 10


def test_a_split_file_that_does_not_fit_stops_before_the_job(launch: Launch, finished: RunPaths) -> None:
    done = launch("runzipcluster.sh", "--shards", "3", **finished.settings)
    assert done.returncode == 2
    assert "--shards 3 does not match" in done.stderr
    (finished.directory / "splits.txt").write_text("b\na\n")
    settings = {**finished.settings, "SPLIT_FILE": finished.directory / "splits.txt"}
    done = launch("runzipcluster.sh", **settings)
    assert done.returncode == 2
    assert "splits.txt" in done.stderr


def test_a_cluster_is_published_where_it_is_and_elsewhere(
    launch: Launch, places: RunPaths, finished_once: RunPaths
) -> None:
    unfinished = launch("publish_index.sh", **places.settings)
    assert unfinished.returncode in (1, 2)
    assert f"{places.directory}/cluster" in unfinished.stderr
    settings = {**places.settings, "ZIPNUM_CLUSTER_DIR": places.directory / "2026-44/indexes"}
    shutil.copytree(finished_once.directory / "cluster", places.directory / "2026-44/indexes")
    done = launch("publish_index.sh", "2026-44", "november", **settings)
    assert done.returncode == 0, done.stderr
    assert (places.directory / "2026-44/metadata.yaml").read_text() == 'title: "November 2026 Index"\n'
    elsewhere = {**settings, "PUBLISH_DIR": places.directory / "site/indexes"}
    done = launch("publish_index.sh", "--location", "https://example.org/i", **elsewhere)
    assert done.returncode == 0, done.stderr
    assert shards(places.directory / "site/indexes") == shards(places.directory / "2026-44/indexes")
    locations = (places.directory / "site/indexes/cluster.loc").read_text()
    assert locations.startswith("cdx-00000.gz\thttps://example.org/i/cdx-00000.gz\n")


@pytest.fixture
def pretender(tmp_path: Path) -> Path:
    """An environment whose Python takes the place of a job: it does what the shell words in $JOB say."""
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/bash\n[[ "$1" == -[cWP] ]] && exec {shlex.quote(sys.executable)} "$@"\neval "$JOB"\n'
    )
    python.chmod(0o755)
    return tmp_path / "venv"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (0, "done (exit status 0); next: bin/runzipcluster.sh"),
        (
            1,
            "done, but some inputs failed (exit status 1), see above; next: correct them and run this again, or ",
        ),
        (2, "stopped (exit status 2); see the message above"),
        (3, "stopped (exit status 3); see the message above and docs/engines.md"),
        (130, "stopped by a signal (exit status 130); run it again to continue"),
    ],
)
def test_the_exit_status_is_that_of_the_job(
    status: int, said: str, launch: Launch, places: RunPaths, pretender: Path
) -> None:
    env = {"CDXMILL_VENV": str(pretender), "JOB": f"exit {status}"}
    done = launch("runsample.sh", env=env, **places.settings)
    assert done.returncode == status
    assert said in last_line(done.stderr)


def test_a_step_that_stopped_stops_the_steps_behind_it(
    launch: Launch, places: RunPaths, pretender: Path
) -> None:
    job = 'echo "$1" >&2; [[ "$1" != *dosample* ]] || exit 3'
    done = launch("run_index_hadoop.sh", env={"CDXMILL_VENV": str(pretender), "JOB": job}, **places.settings)
    assert done.returncode == 3
    assert "indexwarcsjob.py\n" in done.stderr
    assert "zipnumclusterjob.py" not in done.stderr


def test_keys_are_not_shown_where_a_job_fails(launch: Launch, places: RunPaths) -> None:
    hadoop = places.directory / "hadoop"
    (hadoop / "bin").mkdir(parents=True)
    (hadoop / "hadoop-streaming-3.4.2.jar").touch()
    (hadoop / "bin/hadoop").write_text(
        '#!/bin/sh\ncase "$*" in version) echo Hadoop 3.4.2 ;; jar*) exit 5 ;;\n'
        '*-cat*) echo "cat: No such file or directory" >&2; exit 1 ;; esac\n'
    )
    (hadoop / "bin/hadoop").chmod(0o755)
    keys = {"AWS_ACCESS_KEY_ID": "AKIA0", "AWS_SECRET_ACCESS_KEY": "hush/hush", "AWS_SESSION_TOKEN": "token0"}
    (places.directory / "cdx").mkdir()
    (places.directory / "cdx/a.cdx").write_text('com,a)/ 20200101000000 {"url": "http://a.com/"}\n')
    settings = {**places.settings, **keys, "RUNNER": "hadoop", "HADOOP_HOME": hadoop}
    words = [
        "--cmdenv=MY_TOKEN=secret1",
        "--jobconf",
        "fs.s3a.secret.key=secret2",
        "--jobconf=fs.s3a.access.key=secret3",
    ]
    for options in ([], words):
        done = launch("runsample.sh", *options, **settings)
        assert done.returncode == 3
        hidden = (*keys.values(), "secret1", "secret2", "secret3")
        assert [value for value in hidden if value in done.stderr + done.stdout] == []


JOB_THAT_WAITS = """
exec python3 -c '
import os, signal, sys, time
def end(*_): os.write(1, b"ending\\n"); time.sleep(0.2); sys.exit(143)  # print may be at work already
signal.signal(signal.SIGTERM, end)
try:
    print("waiting", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
'
"""


def environment_of(places: RunPaths, pretender: Path, job: str) -> dict[str, str]:
    """The environment of a launcher that is not waited for."""
    own = write_settings(places.directory / "own.sh", places.settings)
    return {**clean_environment(), "INDEX_ENV": str(own), "CDXMILL_VENV": str(pretender), "JOB": job}


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_ends_the_job_first(sent: int, status: int, places: RunPaths, pretender: Path) -> None:
    started = subprocess.Popen(
        [ROOT / "bin/runsample.sh"],
        env=environment_of(places, pretender, JOB_THAT_WAITS),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "waiting\n"
    started.send_signal(sent)
    output, said = started.communicate()
    assert output == ("" if status == 130 else "ending\n")
    assert (
        last_line(said)
        == f"runsample.sh: stopped by a signal (exit status {status}); run it again to continue"
    )
    assert started.returncode == status


def test_in_the_background(launch: Launch, places: RunPaths) -> None:
    done = launch("run_index_hadoop.sh", "--background", "--replace", **places.settings)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"run_index_hadoop.sh: started as process \d+; .* go to (.*\.log)\n", done.stderr)
    assert found is not None
    log = Path(found[1])
    while "exit status" not in log.read_text():
        time.sleep(0.05)
    assert log.parent == places.directory / "called from"
    assert last_line(log.read_text()).startswith("run_index_hadoop.sh: done (exit status 0)")
    assert len(shards(places.directory / "cluster")) == 2


def test_what_is_wrong_is_said_before_it_goes_to_the_background(launch: Launch, places: RunPaths) -> None:
    done = launch("runsample.sh", "--background", **{**places.settings, "SPLIT_FILE": ""})
    assert done.returncode == 2
    assert "SPLIT_FILE is not set" in done.stderr
    assert list((places.directory / "called from").iterdir()) == []
