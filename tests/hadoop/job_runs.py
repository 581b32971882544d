"""Jobs on the test cluster as users start them, what is in its file systems, and its tasks as processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .conftest import Hadoop

JOBS = Path(__file__).resolve().parents[2] / "jobs"
HDFS = "hdfs://127.0.0.1:9000"
BUCKET = "job-data"
_BOTO = """
import sys, boto3
s3 = boto3.client("s3")
s3.create_bucket(Bucket=sys.argv[1])
for path, key in zip(sys.argv[2::2], sys.argv[3::2]):
    s3.upload_file(path, sys.argv[1], key, ExtraArgs={"ACL": "public-read"})
"""
_LIST = """
import json, sys
from cdxmill.storage.location import locate
from cdxmill.storage.walk import files_below
found = [(url, locate(url).status()) for url in files_below(sys.argv[1]).files]
print(json.dumps([(url, *entry[:2]) for url, entry in found if entry is not None]))  # a job that runs deletes files
"""
_SETTINGS = """
import sys, urllib.request
url = f"http://127.0.0.1:19888/ws/v1/history/mapreduce/jobs/{sys.argv[1]}/conf"
print(urllib.request.urlopen(url).read().decode())
"""
_STATUS = """
import json, sys, time, urllib.request
url = f"http://127.0.0.1:8088/ws/v1/cluster/apps/{sys.argv[1]}"
while (app := json.load(urllib.request.urlopen(url))["app"])["state"] not in ("FINISHED", "FAILED", "KILLED"):
    time.sleep(0.1)
print(app["finalStatus"])
"""
_WAIT = """
import sys, time
from cdxmill.storage.location import locate
while not set(sys.argv[2:]) <= set(locate(sys.argv[1]).entries()):
    time.sleep(0.1)
"""


class Ended(NamedTuple):
    """How a job ended."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def last_line(self) -> str:
        return self.stderr.splitlines()[-1]

    @property
    def mappers(self) -> int:
        """How many there are, speculative attempts not counted."""
        return int(self.stderr.partition("  number of splits:")[2].split("\n")[0])

    def counter(self, name: str) -> int:
        """A counter as mrjob prints it; 0 where there is none of the name."""
        found = re.findall(rf"^\t\t{re.escape(name)}=(\d+)$", self.stderr, re.M)
        return int(found[0]) if found else 0


class Task(NamedTuple):
    """A task of Python on a node: its process, its shard's number, which attempt it is, and its folder."""

    pid: int
    partition: int
    attempt: str
    directory: Path


class Jobs:
    """Starts the scripts of jobs/ with `-r hadoop`; paths and URLs are as the cluster knows them."""

    def __init__(self, hadoop: Hadoop) -> None:
        self._hadoop = hadoop

    def start(self, name: str, *args: str | Path) -> subprocess.Popen[bytes]:
        """Starts one, without the user's mrjob.conf."""
        return self._hadoop.start(sys.executable, JOBS / f"{name}.py", "--no-conf", "-r", "hadoop", *args)

    def run(self, name: str, *args: str | Path) -> Ended:
        """Runs one to its end; any status is a result."""
        with self.start(name, *args) as process:
            return ended(process)

    def cdxmill(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """The command itself, where it reaches the cluster."""
        return self._hadoop.cdxmill(*words, check=check)

    def fs(self, *words: str | Path) -> bytes:
        """What `hadoop fs` prints."""
        return self._hadoop.fs(*words)

    def settings(self, job: Ended) -> str:
        """All settings of a job, as the history server has them for every user."""
        number = re.findall(r"Running job: (job_\d+_\d+)", job.stderr)[0]
        return self._hadoop.run(sys.executable, "-c", _SETTINGS, number).stdout.decode()

    def get(self, url: str, directory: Path) -> dict[str, bytes]:
        """All files below a folder of the cluster, by their path in it; they stay in `folder` as well."""
        self.fs("-get", url, directory.as_uri())
        return files_below(directory / url.rstrip("/").rpartition("/")[2])

    def listed(self, url: str) -> dict[str, tuple[int, float]]:
        """The files below a folder of the cluster, by URL: bytes, and when they were written."""
        rows = json.loads(self._hadoop.run(sys.executable, "-c", _LIST, url).stdout)
        return {name: (size, modified) for name, size, modified in rows}

    def upload(self, files: dict[str, Path]) -> None:
        """Puts files to the S3 bucket BUCKET, which is made, under the keys given."""
        pairs = [str(word) for key, path in files.items() for word in (path, key)]
        self._hadoop.run(sys.executable, "-c", _BOTO, BUCKET, *pairs)

    def final_status(self, application: str) -> str:
        """How an application of YARN ended. It is waited for."""
        done = self._hadoop.run("timeout", "120", sys.executable, "-c", _STATUS, application)
        return done.stdout.decode().strip()

    def wait_for_files(self, url: str, names: Iterable[str]) -> None:
        """Returns when all of these are in a folder."""
        self._hadoop.run("timeout", "120", sys.executable, "-c", _WAIT, url, *names)

    def tasks(self, verb: str) -> Iterator[Task]:
        """The tasks `hadoop_task.py VERB` that run now. Asked often: of most processes only the command is read."""
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and (task := self._task(process, verb)) is not None:
                yield task

    def _task(self, process: Path, verb: str) -> Task | None:
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"cdxmill_nodes/hadoop_task.py" not in words or verb.encode() not in words:
                return None
            environ = (process / "environ").read_bytes().split(b"\0")
            directory = (process / "cwd").readlink()
        except OSError:
            return None
        given = dict(item.decode(errors="replace").partition("=")[::2] for item in environ if item)
        # while a process starts, its environment is empty
        if not directory.is_relative_to(self._hadoop.directory) or "mapreduce_task_attempt_id" not in given:
            return None
        partition, attempt = given["mapreduce_task_partition"], given["mapreduce_task_attempt_id"]
        return Task(int(process.name), int(partition), attempt, directory)


def ended(process: subprocess.Popen[bytes]) -> Ended:
    """Waits for a job's end."""
    stdout, stderr = process.communicate()
    return Ended(process.returncode, stdout, stderr.decode(errors="replace"))


def files_below(directory: Path) -> dict[str, bytes]:
    """All files below a folder, by their path in it, without the record of the local engine's run."""
    found = (path for path in directory.rglob("*") if path.is_file() and path.name != ".finished.json")
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def bare_python(version: str) -> str:
    """A Python of this version ("3.9") where one is at hand, else this one; with its standard library alone."""
    found = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    return f"{found[-1] if found else Path(sys.executable).resolve()} -I -S"
