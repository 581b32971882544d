"""Usage: bin/hadoop-dev VERB: a whole Hadoop on this machine, in a network of its own, for tests and benchmarks.

  up [s3]     start HDFS, YARN and the history server (and an S3 server); quick where they run already
  status      say what runs; exit status 0 where a job can run, 1 where not
  run CMD...  run a command where it reaches the cluster, with HADOOP_HOME and the like set
  env         print the variables that `run` sets, as a shell reads them
  down        stop everything, and remove what is in HDFS and S3

All state is in build/hadoop-dev, or in the folder that CDXMILL_HADOOP_DEV names: one cluster a folder.
Exit status: 0 well, 1 failed (one line says why), 2 usage, 130 or 143 stopped; of `run`, that of the command.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

import own_network
from maven_jars import Failure, checked_jars, java_home, locked, say

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf/hadoop-dev"
STATE = Path(os.environ.get("CDXMILL_HADOOP_DEV") or ROOT / "build/hadoop-dev").resolve()
HOME, LOGS = STATE / "home", STATE / "home/logs"
WITH_S3, JAVA_HOME = STATE / "wants-s3", STATE / "java-home"  # files: S3 is to run; the Java in use

MARK = "HADOOP_DEV_CLUSTER", str(STATE)  # a variable that all of the cluster's processes inherit
DAEMONS = ("namenode", "datanode", "resourcemanager", "nodemanager", "historyserver")
PATIENCE = 180  # seconds until a job can run: 8 where nothing else is at work
S3_VARIABLES = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9878",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}


# What is on disk


def lay_out(java: Path, jars: Path) -> None:
    """A fresh HADOOP_HOME, and empty folders for all data."""
    remove_data()
    shutil.rmtree(HOME, ignore_errors=True)
    for name in ("bin", "etc/hadoop", "logs", "share/hadoop/common/lib", "share/hadoop/tools/lib"):
        (HOME / name).mkdir(parents=True)
    (STATE / "tmp").mkdir()
    for jar in jars.iterdir():  # a job of Hadoop streaming brings that jar itself
        kind = "tools" if jar.name.startswith("hadoop-streaming") else "common"
        (HOME / "share/hadoop" / kind / "lib" / jar.name).symlink_to(jar)
    for name in ("hadoop", "hdfs", "yarn", "mapred"):
        shutil.copy(CONF / "hadoop", HOME / "bin" / name)
    configure()
    JAVA_HOME.write_text(str(java))


def configure() -> None:
    """The settings, with the paths and the memory of this machine."""
    cores = os.cpu_count() or 1
    memory = (
        1024 * (cores + 1) + 512
    )  # MB: a task a core and one more, 1 GB each, beside the master of the job
    settings = HOME / "etc/hadoop"
    for path in (*CONF.glob("*-site.xml"), CONF / "log4j.properties"):
        text = path.read_text().replace("@STATE@", str(STATE)).replace("@HOME@", str(HOME))
        (settings / path.name).write_text(text.replace("@MEMORY@", str(memory)))
    for name in ("hdfs", "datanode", "static"):  # the jars lack these pages, without which the daemons end
        (settings / "webapps" / name).mkdir(parents=True)


def remove_data() -> None:
    """Nothing of HDFS and of the jobs stays; the logs do."""
    WITH_S3.unlink(missing_ok=True)
    for name in ("hdfs", "yarn", "tmp"):
        shutil.rmtree(STATE / name, ignore_errors=True)


def variables() -> dict[str, str]:
    """What `run` sets; requires a HADOOP_HOME."""
    java = JAVA_HOME.read_text()
    path = os.pathsep.join([f"{HOME}/bin", f"{java}/bin", os.environ.get("PATH", os.defpath)])
    hadoop = {
        "HADOOP_HOME": str(HOME),
        "HADOOP_CONF_DIR": f"{HOME}/etc/hadoop",
        "JAVA_HOME": java,
        "PATH": path,
    }
    return {**hadoop, **(S3_VARIABLES if WITH_S3.exists() else {})}


# Within the network of the cluster


def ask(port: int, path: str) -> Any:
    """The JSON at an address of the cluster; None where nothing answers yet."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return json.load(answer)
    except (OSError, ValueError, HTTPException):
        return None


def hdfs_is_ready() -> bool:
    """The NameNode has left its safe mode, and knows of room: a DataNode is there, and has sent its first report."""
    answer = ask(9870, "/jmx?qry=Hadoop:service=NameNode,name=*") or {"beans": []}
    beans = {bean["name"].rpartition("=")[2]: bean for bean in answer["beans"]}
    room: int = beans.get("FSNamesystemState", {}).get("CapacityRemaining", 0)
    return room > 0 and beans.get("NameNodeInfo", {}).get("Safemode") == ""


def yarn_is_ready() -> bool:
    """The ResourceManager knows a NodeManager."""
    answer = ask(8088, "/ws/v1/cluster/metrics")
    return bool(answer and answer["clusterMetrics"]["activeNodes"])


def unready() -> list[str]:
    """The services that do not do their work yet."""
    checks: dict[str, Callable[[], bool]] = {
        "HDFS": hdfs_is_ready,
        "YARN": yarn_is_ready,
        "the history server": lambda: ask(19888, "/ws/v1/history/info") is not None,
        "S3": lambda: not WITH_S3.exists() or ask(9878, "/moto-api/data.json") is not None,
    }
    return [name for name, is_ready in checks.items() if not is_ready()]


class Start:
    """The start of daemons, and the wait for them; they outlive us and the terminal."""

    def __init__(self) -> None:
        self.started: dict[str, subprocess.Popen[bytes]] = {}
        self.deadline = time.monotonic() + PATIENCE

    def daemon(self, name: str, *command: str) -> None:
        """Starts one; what it prints is its log."""
        with (LOGS / f"{name}.log").open("wb") as log:
            self.started[name] = subprocess.Popen(
                command, cwd=STATE, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def hadoop(self, name: str) -> None:
        """Starts one of Hadoop's."""
        self.daemon(name, f"{HOME}/bin/hadoop", name)

    def wait(self, is_ready: Callable[[], bool]) -> None:
        """Returns when that is so; raises Failure where a daemon ends before, or the time is over."""
        while not is_ready():
            for name, process in self.started.items():
                if process.poll() is not None:
                    raise Failure(f"{name} ended with {process.returncode}: see {LOGS / name}.log")
            if time.monotonic() > self.deadline:
                raise Failure(f"{' and '.join(unready())} not ready in {PATIENCE} s: see {LOGS}")
            time.sleep(0.1)


def start(verb: str) -> None:
    """Starts what is absent, the S3 server alone or all, and returns when a job can run."""
    starting = Start()
    if WITH_S3.exists():
        server = Path(sys.executable).parent / "moto_server"
        starting.daemon("s3", str(server), "-H", "127.0.0.1", "-p", "9878")
    if verb == "_start":
        own_network.raise_loopback()
        for name in ("resourcemanager", "nodemanager", "datanode"):
            starting.hadoop(name)
        with (LOGS / "format.log").open("wb") as log:
            command = [f"{HOME}/bin/hadoop", "namenode", "-format", "-nonInteractive"]
            if subprocess.run(command, stdout=log, stderr=log, check=False).returncode:
                raise Failure(f"HDFS could not be formatted: see {LOGS}/format.log")
        starting.hadoop("namenode")
        starting.wait(hdfs_is_ready)  # the history server would look again after 10 s only
        starting.hadoop("historyserver")
    starting.wait(lambda: not unready())


# Outside


def members() -> list[own_network.Process]:
    """All processes of the cluster: daemons, tasks, and what `run` started."""
    return own_network.members("=".join(MARK))


def running() -> dict[str, int]:
    """The pids of the daemons that are alive."""
    signs = {name: f"\0-Dproc_{name}\0".encode() for name in DAEMONS} | {"s3": b"/moto_server\0"}
    alive = members()
    return {name: one.pid for name, sign in signs.items() for one in alive if sign in one.command}


def inside(prefix: list[str], verb: str) -> subprocess.CompletedProcess[bytes]:
    """This same script within the network, with nothing of the caller's environment that daemons could heed."""
    names = ("HOME", "USER", "LOGNAME", "TZ", "CDXMILL_HADOOP_DEV")
    env = {name: os.environ[name] for name in names if name in os.environ} | dict([MARK]) | variables()
    env["PATH"] = (
        f"{HOME}/bin:{env['JAVA_HOME']}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    )
    env["LANG"] = "C.UTF-8"
    command = [*prefix, sys.executable, __file__, verb]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)


def faults() -> list[str]:
    """What keeps a job from running; none where all is well."""
    pids = running()
    expected = (*DAEMONS, "s3") if WITH_S3.exists() else DAEMONS
    if absent := [name for name in expected if name not in pids]:
        return [f"{name} is not running" for name in absent]
    names = inside(own_network.joined(pids["namenode"]), "_unready").stdout.decode().splitlines()
    return [f"{name} is not ready" for name in names]


def up(with_s3: bool) -> None:
    """Starts the cluster, or what it lacks; one that is not whole is ended first."""
    if any(mark in str(STATE) for mark in " \t\n,"):
        raise Failure(
            f"{STATE}: Hadoop takes no blank or comma in a folder: set CDXMILL_HADOOP_DEV to another"
        )
    with locked(STATE):
        is_whole = not faults()
        if is_whole and WITH_S3.exists() >= with_s3:
            return
        try:
            prefix = own_network.joined(running()["namenode"]) if is_whole else renewed()
            if with_s3:
                WITH_S3.touch()
            if status := inside(prefix, "_start_s3" if is_whole else "_start").returncode:
                raise SystemExit(status)
        except BaseException:
            destroy()
            raise


def renewed() -> list[str]:
    """Ends what is left of a cluster and lays out another; what to put in front of its first command."""
    prefix, java = own_network.new(), java_home()
    jars = checked_jars(CONF)
    destroy()
    lay_out(java, jars)
    return prefix


def destroy() -> None:
    """Ends all processes of the cluster and removes its data."""
    own_network.end("=".join(MARK))
    remove_data()


def down() -> None:
    """Stops everything; well where nothing runs."""
    with locked(STATE):
        destroy()


def status() -> None:
    """Prints each daemon; raises Failure with the first of the faults."""
    pids = running()
    for name in (*DAEMONS, "s3"):
        print(f"{name:16}{f'pid {pids[name]}' if name in pids else 'not running'}")
    if reasons := faults():
        raise Failure(f"{reasons[0]}: `bin/hadoop-dev up` starts the cluster anew; logs are in {LOGS}")
    print("a job can run")


def run(command: list[str]) -> None:
    """Becomes the command, within the network."""
    alive = members()
    if not alive:
        raise Failure("no cluster is running: start one by `bin/hadoop-dev up`")
    proxies = ("http_proxy", "https_proxy", "all_proxy")  # they are outside
    env = {name: value for name, value in os.environ.items() if name.lower() not in proxies}
    os.execvpe("nsenter", [*own_network.joined(alive[0].pid), *command], env | dict([MARK]) | variables())


def environment() -> None:
    """Prints the variables, quoted for a shell."""
    if not JAVA_HOME.exists():
        raise Failure("no cluster is laid out yet: start one by `bin/hadoop-dev up`")
    for name, value in variables().items():
        print(f"export {name}={shlex.quote(value)}")


def main(arguments: list[str]) -> None:
    """The verb; those that begin with _ are said by this script to itself, within the network."""
    is_within = os.environ.get(MARK[0]) == MARK[1]
    match arguments:
        case [verb, *_] if is_within and not verb.startswith("_"):
            raise Failure("this is within the cluster: call bin/hadoop-dev from outside")
        case ["up"] | ["up", "s3"]:
            up("s3" in arguments)
        case ["down"]:
            down()
        case ["status"]:
            status()
        case ["env"]:
            environment()
        case ["run", *command] if command:
            run(command)
        case ["_start" | "_start_s3" as verb]:
            start(verb)
        case ["_unready"]:
            sys.stdout.writelines(f"{name}\n" for name in unready())
        case ["-h" | "--help"]:
            print(__doc__, end="")
        case _:
            say("usage: bin/hadoop-dev up [s3] | status | run CMD... | env | down; more by --help")
            raise SystemExit(2)


def stop(number: int, _: object) -> None:
    """Ends as a signal asks, but by way of what is to be undone."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        main(sys.argv[1:])
    except (Failure, OSError) as failure:
        say(f"hadoop-dev: {failure}")
        raise SystemExit(1) from None
