"""Usage: bin/hadoop-dev VERB. Runs Hadoop on this machine, in its own network, for tests and benchmarks.

  up [s3]     start HDFS, YARN and the history server (and an S3 server); quick if they run already
  status      print what runs; exit status 0 if a job can run, else 1
  run CMD...  run a command in the cluster's network, with HADOOP_HOME and similar variables set
  env         print the variables that `run` sets, as shell commands
  down        stop everything, and delete the data in HDFS and S3

All state is in build/hadoop-dev, or in the directory CDXMILL_HADOOP_DEV: one cluster per directory.
Exit status: 0 success, 1 failed (one line has the reason), 2 usage, 130 or 143 stopped; of `run`, that of the command.
"""

from __future__ import annotations

import getpass
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
from shared_classes import SharedClasses, shared_classes

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf/hadoop-dev"
STATE = Path(os.environ.get("CDXMILL_HADOOP_DEV") or ROOT / "build/hadoop-dev").resolve()
HOME, LOGS = STATE / "home", STATE / "home/logs"
WITH_S3, JAVA_HOME = STATE / "wants-s3", STATE / "java-home"  # files: S3 is wanted; the Java in use

MARK = "HADOOP_DEV_CLUSTER", str(STATE)  # a variable that all of the cluster's processes inherit
DAEMONS = ("namenode", "datanode", "resourcemanager", "nodemanager", "historyserver")
TIMEOUT = 180  # seconds until a job can run; 8 on an idle machine
S3_VARIABLES = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9878",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}


# What is on disk


def lay_out(java: Path, jars: Path, shared: SharedClasses) -> None:
    """Create a new HADOOP_HOME, and empty directories for all data."""
    remove_data()
    shutil.rmtree(HOME, ignore_errors=True)
    for name in ("bin", "etc/hadoop/node", "logs", "share/hadoop/common/lib", "share/hadoop/tools/lib"):
        (HOME / name).mkdir(parents=True)
    (STATE / "tmp").mkdir()
    for jar in jars.iterdir():  # the streaming jar is sent by each job itself
        kind = "tools" if jar.name.startswith("hadoop-streaming") else "common"
        (HOME / "share/hadoop" / kind / "lib" / jar.name).symlink_to(jar)
    for name in ("hadoop", "hdfs", "yarn", "mapred"):
        shutil.copy(CONF / "hadoop", HOME / "bin" / name)
    configure(shared)
    JAVA_HOME.write_text(str(java))


def configure(shared: SharedClasses) -> None:
    """Write the settings, with the paths and the memory of this machine."""
    cores = os.cpu_count() or 1
    memory = 1024 * (cores + 1) + 512  # MB: one task of 1 GB per core and one more, and the job's master
    settings = HOME / "etc/hadoop"
    values = {
        "STATE": STATE,
        "HOME": HOME,
        "MEMORY": memory,
        "JARS": shared.all_jars,
        "CLASSES": shared.archive,
        "NODE": shared.node,
    }
    own = [CONF / "node/core-site.xml"] if shared.node.exists() else []  # of the NodeManager
    for path in (*CONF.glob("*-site.xml"), CONF / "log4j.properties", CONF / "classes.sh", *own):
        text = path.read_text()
        for name, value in values.items():
            text = text.replace(f"@{name}@", str(value))
        (settings / path.relative_to(CONF)).write_text(text)
    for name in (
        "hdfs",
        "datanode",
        "static",
    ):  # without these directories, which are not in the jars, the daemons exit
        (settings / "webapps" / name).mkdir(parents=True)


def remove_data() -> None:
    """Delete the data of HDFS and the jobs, but not the logs."""
    WITH_S3.unlink(missing_ok=True)
    for name in ("hdfs", "yarn", "tmp"):
        shutil.rmtree(STATE / name, ignore_errors=True)


def variables() -> dict[str, str]:
    """The variables that `run` sets. Requires: lay_out was called."""
    java = JAVA_HOME.read_text()
    path = os.pathsep.join([f"{HOME}/bin", f"{java}/bin", os.environ.get("PATH", os.defpath)])
    hadoop = {
        "HADOOP_HOME": str(HOME),
        "HADOOP_CONF_DIR": f"{HOME}/etc/hadoop",
        "JAVA_HOME": java,
        "PATH": path,
    }
    return {**hadoop, **(S3_VARIABLES if WITH_S3.exists() else {})}


# Inside the network of the cluster


def ask(port: int, path: str) -> Any:
    """The JSON at an address of the cluster; None if there is no answer yet."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return json.load(answer)
    except (OSError, ValueError, HTTPException):
        return None


def hdfs_is_ready() -> bool:
    """Whether the NameNode has left safe mode and has capacity, that is, a DataNode has reported to it."""
    answer = ask(9870, "/jmx?qry=Hadoop:service=NameNode,name=*") or {"beans": []}
    beans = {bean["name"].rpartition("=")[2]: bean for bean in answer["beans"]}
    room: int = beans.get("FSNamesystemState", {}).get("CapacityRemaining", 0)
    return room > 0 and beans.get("NameNodeInfo", {}).get("Safemode") == ""


HISTORY = "/tmp/hadoop-yarn/staging/history"
"""In HDFS; the history server would make it unreadable for others than the user who starts it."""


def make_shared_directories() -> None:
    """Create the directories in HDFS that each user of MapReduce writes to. Who starts the cluster may do everything."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for path in ("/tmp", "/tmp/hadoop-yarn", "/tmp/hadoop-yarn/staging", HISTORY):
        query = f"op=MKDIRS&permission=1777&user.name={getpass.getuser()}"
        address = f"http://127.0.0.1:9870/webhdfs/v1{path}?{query}"
        direct.open(urllib.request.Request(address, method="PUT"), timeout=60).close()


def yarn_is_ready() -> bool:
    """Whether a NodeManager has reported to the ResourceManager."""
    answer = ask(8088, "/ws/v1/cluster/metrics")
    return bool(answer and answer["clusterMetrics"]["activeNodes"])


def unready() -> list[str]:
    """The services that are not ready yet."""
    checks: dict[str, Callable[[], bool]] = {
        "HDFS": hdfs_is_ready,
        "YARN": yarn_is_ready,
        "the history server": lambda: ask(19888, "/ws/v1/history/info") is not None,
        "S3": lambda: not WITH_S3.exists() or ask(9878, "/moto-api/data.json") is not None,
    }
    return [name for name, is_ready in checks.items() if not is_ready()]


class Start:
    """Starts daemons and waits for them. They keep running after this script and the terminal."""

    def __init__(self) -> None:
        self.started: dict[str, subprocess.Popen[bytes]] = {}
        self.deadline = time.monotonic() + TIMEOUT

    def daemon(self, name: str, *command: str) -> None:
        """Start a daemon; its output goes to its log."""
        with (LOGS / f"{name}.log").open("wb") as log:
            self.started[name] = subprocess.Popen(
                command, cwd=STATE, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def hadoop(self, name: str) -> None:
        """Start a daemon of Hadoop."""
        self.daemon(name, f"{HOME}/bin/hadoop", name)

    def wait(self, is_ready: Callable[[], bool]) -> None:
        """Wait until `is_ready` is true. Raises Failure if a daemon exits, or after TIMEOUT."""
        while not is_ready():
            for name, process in self.started.items():
                if process.poll() is not None:
                    raise Failure(f"{name} exited with status {process.returncode}; see {LOGS / name}.log")
            if time.monotonic() > self.deadline:
                raise Failure(f"{' and '.join(unready())} not ready after {TIMEOUT} s; see {LOGS}")
            time.sleep(0.1)


def start(verb: str) -> None:
    """Start everything, or only the S3 server, and return when a job can run."""
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
                raise Failure(f"HDFS could not be formatted; see {LOGS}/format.log")
        starting.hadoop("namenode")
        starting.wait(hdfs_is_ready)
        make_shared_directories()
        # the history server would try again only after 10 s
        starting.hadoop("historyserver")
    starting.wait(lambda: not unready())


# Outside the network of the cluster


def members() -> list[own_network.Process]:
    """All processes of the cluster: daemons, tasks, and those that `run` started."""
    return own_network.members("=".join(MARK))


def running() -> dict[str, int]:
    """The pids of the daemons that run."""
    signs = {name: f"\0-Dproc_{name}\0".encode() for name in DAEMONS} | {"s3": b"/moto_server\0"}
    alive = members()
    return {name: one.pid for name, sign in signs.items() for one in alive if sign in one.command}


def inside(prefix: list[str], verb: str) -> subprocess.CompletedProcess[bytes]:
    """Run this script inside the network, without variables of the caller that could affect the daemons."""
    names = ("HOME", "USER", "LOGNAME", "TZ", "CDXMILL_HADOOP_DEV")
    env = {name: os.environ[name] for name in names if name in os.environ} | dict([MARK]) | variables()
    env["PATH"] = (
        f"{HOME}/bin:{env['JAVA_HOME']}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    )
    env["LANG"] = "C.UTF-8"
    command = [*prefix, sys.executable, __file__, verb]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)


def faults() -> list[str]:
    """The reasons why no job can run; none if one can."""
    pids = running()
    expected = (*DAEMONS, "s3") if WITH_S3.exists() else DAEMONS
    if absent := [name for name in expected if name not in pids]:
        return [f"{name} is not running" for name in absent]
    names = inside(own_network.joined(pids["namenode"]), "_unready").stdout.decode().splitlines()
    return [f"{name} is not ready" for name in names]


def up(with_s3: bool) -> None:
    """Start the cluster, or its S3 server. If a daemon is missing, end the others first."""
    if any(mark in str(STATE) for mark in " \t\n,"):
        raise Failure(
            f"{STATE}: Hadoop allows no space or comma in a path; set CDXMILL_HADOOP_DEV to another directory"
        )
    with locked(STATE):
        is_whole = not faults()
        if is_whole and WITH_S3.exists() >= with_s3:
            tell("runs already")
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
        tell("started")


def tell(state: str) -> None:
    """Say what runs, and how it is used and stopped."""
    services = f"Hadoop with HDFS at hdfs://127.0.0.1:9000{' and S3' if WITH_S3.exists() else ''}"
    say(f"hadoop-dev: {services}: {state}, {len(running())} processes; data and logs are in {STATE}")
    say(
        "hadoop-dev: bin/hadoop-dev run CMD... runs a command with it; bin/hadoop-dev down stops it and deletes its data"
    )


def renewed() -> list[str]:
    """End what is left of a cluster and lay out a new one. Returns the prefix of its first command."""
    prefix, java = own_network.new(), java_home()
    jars = checked_jars(CONF)
    shared = shared_classes(CONF, jars, java)
    destroy()
    lay_out(java, jars, shared)
    return prefix


def destroy() -> None:
    """End all processes of the cluster and delete its data."""
    own_network.end("=".join(MARK))
    remove_data()


def down() -> None:
    """Stop everything. No error if nothing runs."""
    with locked(STATE):
        destroy()


def status() -> None:
    """Print each daemon. Raises Failure with the first reason why no job can run."""
    pids = running()
    for name in (*DAEMONS, "s3"):
        print(f"{name:16}{f'pid {pids[name]}' if name in pids else 'not running'}")
    if reasons := faults():
        raise Failure(f"{reasons[0]}; run `bin/hadoop-dev up` to restart the cluster; logs are in {LOGS}")
    print("a job can run")


def run(command: list[str]) -> None:
    """Replace this process by the command, inside the network."""
    alive = [
        *running().values(),
        *(one.pid for one in members()),
    ]  # a daemon stays; a task may end at any moment
    if not alive:
        raise Failure("no cluster is running; start one with `bin/hadoop-dev up`")
    proxies = ("http_proxy", "https_proxy", "all_proxy")  # they cannot be reached
    env = {name: value for name, value in os.environ.items() if name.lower() not in proxies}
    os.execvpe("nsenter", [*own_network.joined(alive[0]), *command], env | dict([MARK]) | variables())


def environment() -> None:
    """Print the variables, quoted for a shell."""
    if not JAVA_HOME.exists():
        raise Failure("no cluster exists yet; start one with `bin/hadoop-dev up`")
    for name, value in variables().items():
        print(f"export {name}={shlex.quote(value)}")


def main(arguments: list[str]) -> None:
    """Run a verb. Verbs that begin with _ are used by this script itself, inside the network."""
    is_within = os.environ.get(MARK[0]) == MARK[1]
    match arguments:
        case [verb, *_] if is_within and not verb.startswith("_"):
            raise Failure("this shell is inside the cluster's network; run bin/hadoop-dev outside of it")
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
            say("usage: bin/hadoop-dev up [s3] | status | run CMD... | env | down; see --help")
            raise SystemExit(2)


def stop(number: int, _: object) -> None:
    """Exit on a signal by an exception, so that cleanup runs."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        main(sys.argv[1:])
    except (Failure, OSError) as failure:
        say(f"hadoop-dev: {failure}")
        raise SystemExit(1) from None
