"""A Hadoop with Kerberos, for as long as its tests run: bin/hadoop-dev's own, with a Kerberos server and other settings.

    CDXMILL_HADOOP_DEV=FOLDER PYTHONPATH=bin python tests/hadoop/secured.py

starts it; then bin/hadoop-dev run and down work as usual.

HTTP needs a ticket, too, so WebHDFS cannot be used. YARN runs the tasks, but without Hadoop's native library, which is
not on Maven Central, it cannot send a reducer what mappers have written: only jobs without reducers can run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import hadoop_dev
import own_network
from maven_jars import checked_jars

REALM = "EXAMPLE.COM"
SERVICE, WEB, USER = "hdfs/localhost", "HTTP/localhost", "alice"
KDC_PORT, WEB_PORTS = 8888, (9870, 9864, 8088, 8042)


def settings(kdc: Path) -> dict[str, dict[str, str]]:
    """What is added to each file of settings."""
    service = {"principal": f"{SERVICE}@{REALM}", "keytab": str(kdc / "keytab")}
    web = {**service, "principal": f"{WEB}@{REALM}"}

    def each(prefixes: Iterable[str], values: dict[str, str]) -> dict[str, str]:
        return {f"{prefix}.{name}": value for prefix in prefixes for name, value in values.items()}

    return {
        "core-site.xml": {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.security.auth_to_local": f"RULE:[2:$1/$2@$0]({SERVICE}@.*)s/.*/root/ DEFAULT",
            "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.signature.secret.file": str(kdc / "secret"),
            **each(["hadoop.http.authentication.kerberos"], web),
        },
        "hdfs-site.xml": {
            "dfs.block.access.token.enable": "true",
            "ignore.secure.ports.for.testing": "true",
            **{f"dfs.{node}.kerberos.principal": service["principal"] for node in ("namenode", "datanode")},
            **{f"dfs.{node}.keytab.file": service["keytab"] for node in ("namenode", "datanode")},
            **each(["dfs.web.authentication.kerberos"], web),
        },
        "yarn-site.xml": each(["yarn.resourcemanager", "yarn.nodemanager"], service),
        "mapred-site.xml": each(["mapreduce.jobhistory"], service),
    }


def secure(kdc: Path) -> None:
    """Change the settings that bin/hadoop-dev has written, and let each Java find the Kerberos server."""
    option = f"-Djava.security.krb5.conf={kdc / 'krb5.conf'}"
    for name, added in settings(kdc).items():
        path = hadoop_dev.HOME / "etc/hadoop" / name
        properties = [
            f"<property><name>{key}</name><value>{value}</value></property>" for key, value in added.items()
        ]
        text = path.read_text().replace("</configuration>", "\n".join([*properties, "</configuration>"]))
        path.write_text(text.replace("-Xlog:disable -cp", f"-Xlog:disable {option} -cp"))
    for path in (hadoop_dev.HOME / "bin").iterdir():
        path.write_text(path.read_text().replace("-XX:+UseSerialGC -XX", f"{option} -XX:+UseSerialGC -XX"))


def answers(port: int) -> bool:
    """Whether a web server answers there, be it with a refusal."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        direct.open(f"http://127.0.0.1:{port}/jmx", timeout=10).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def hadoop(*words: str) -> int:
    """The status of a command, as the superuser. Its output goes to a log."""
    with (hadoop_dev.LOGS / "commands.log").open("ab") as log:
        command = [f"{hadoop_dev.HOME}/bin/hadoop", *words]
        return subprocess.run(command, check=False, stdout=log, stderr=log).returncode


def start_kdc(starting: hadoop_dev.Start, kdc: Path, jars: str) -> None:
    """Start the Kerberos server, which writes krb5.conf and the keys of all names."""
    kdc.mkdir()
    (kdc / "secret").write_text("secret")
    values = {
        "org.name": "EXAMPLE",
        "org.domain": "COM",
        "kdc.bind.address": "127.0.0.1",
        "kdc.port": str(KDC_PORT),
        "instance": "DefaultKrbServer",
        "max.ticket.lifetime": "86400000",
        "max.renewable.lifetime": "604800000",
        "transport": "TCP",
        "debug": "false",
    }
    (kdc / "kdc.conf").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    java, main = hadoop_dev.JAVA_HOME.read_text() + "/bin/java", "org.apache.hadoop.minikdc.MiniKdc"
    files = [str(kdc), str(kdc / "kdc.conf"), str(kdc / "keytab")]
    options = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*")
    starting.daemon("kdc", java, *options, main, *files, SERVICE, WEB, USER)
    log = hadoop_dev.LOGS / "kdc.log"
    starting.wait(lambda: "Standalone MiniKdc Running" in log.read_text())


def start(kdc: Path, jars: str) -> None:
    """Inside the network: start everything, and make the folders that a user needs."""
    starting = hadoop_dev.Start()
    own_network.raise_loopback()
    start_kdc(starting, kdc, jars)
    os.environ.update(KRB5PRINCIPAL=f"{SERVICE}@{REALM}", KRB5KEYTAB=str(kdc / "keytab"))
    for name in ("resourcemanager", "nodemanager", "datanode"):
        starting.hadoop(name)
    hadoop("namenode", "-format", "-nonInteractive")
    starting.hadoop("namenode")
    starting.wait(lambda: all(map(answers, WEB_PORTS)))
    shared = ["/tmp", "/tmp/hadoop-yarn", "/tmp/hadoop-yarn/staging", hadoop_dev.HISTORY]
    while hadoop(
        "fs", "-mkdir", "-p", hadoop_dev.HISTORY, f"/user/{USER}"
    ):  # safe mode, until a data node is there
        time.sleep(0.1)
    hadoop("fs", "-chmod", "1777", *shared)
    hadoop("fs", "-chown", USER, f"/user/{USER}")
    starting.hadoop("historyserver")
    starting.wait(lambda: answers(19888))


def main(arguments: list[str]) -> int:
    """Start the cluster. With `inside`, this is the process in its network."""
    kdc = hadoop_dev.STATE / "kdc"
    if arguments[:1] == ["inside"]:
        start(kdc, arguments[1])
        return 0
    prefix, jars = hadoop_dev.renewed(), checked_jars(hadoop_dev.ROOT / "conf/kdc")
    secure(kdc)
    environment = {**os.environ, **dict([hadoop_dev.MARK]), **hadoop_dev.variables()}
    command = [*prefix, sys.executable, __file__, "inside", str(jars)]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
