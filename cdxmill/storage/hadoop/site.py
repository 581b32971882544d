"""Find the WebHDFS addresses of the name nodes for an hdfs:// URL. The first source that has one is used:

CDXMILL_WEBHDFS=http://HOST:PORT[,http://HOST:PORT]     set by the user
dfs_namenode_http_address, fs_defaultFS, ...            set by Hadoop streaming in the environment of its tasks
core-site.xml, hdfs-site.xml in HADOOP_CONF_DIR
port 9870 of the URL's host                             Hadoop's default
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from cdxmill.errors import UsageError

PORT = 9870
_ANY_HOST = ("0.0.0.0", "")
_FILES = ("core-site.xml", "hdfs-site.xml")

_HOMES = ("HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_PREFIX")
_USUAL_PATHS = (
    "/usr/bin/hadoop",
    "/usr/lib/hadoop/bin/hadoop",
    "/opt/hadoop/bin/hadoop",
    "/usr/local/hadoop/bin/hadoop",
)

NO_TICKET = "there is no valid Kerberos ticket: run kinit"
_NO_TICKET = ("Client cannot authenticate via", "GSS initiate failed")

Setting = Callable[[str], str]


def web_addresses(authority: str) -> tuple[str, ...]:
    """`http://HOST:PORT` of each name node of `authority`: HOST[:PORT], a name service, or "".

    "" is the default file system. Raises UsageError if no default file system is configured.
    """
    addresses = os.environ.get("CDXMILL_WEBHDFS", "")
    if addresses:
        return tuple(address.strip().rstrip("/") for address in addresses.split(",") if address.strip())
    setting = _settings()
    own = _default(setting)
    service = authority or own
    found = [address for address in _listed(setting, service, _host(service) == _host(own)) if address]
    if not found and not service:
        raise UsageError(
            "hdfs:///PATH needs a default file system; set HADOOP_CONF_DIR, or use hdfs://HOST/PATH"
        )
    return tuple(_web_address(address, service) for address in found or [f":{PORT}"])


def file_system(authority: str) -> str:
    """The file system of `authority`: itself, or the default one if it is ""."""
    return authority or _default(_settings())


def _default(setting: Setting) -> str:
    default = urlsplit(setting("fs.defaultFS"))
    return default.netloc if default.scheme == "hdfs" else ""


def why_no_web_hdfs() -> str:
    """The reason why the configuration rules out plain WebHDFS, which needs neither tickets nor TLS; "" if it does not.

    It is not asked if CDXMILL_WEBHDFS names an address, which may be that of a gateway.
    """
    if os.environ.get("CDXMILL_WEBHDFS"):
        return ""
    setting = _settings()
    if setting("hadoop.security.authentication").lower() == "kerberos":
        return "the cluster uses Kerberos"
    if setting("dfs.http.policy").upper() == "HTTPS_ONLY":
        return "the cluster uses TLS only"
    return "WebHDFS is turned off" if setting("dfs.webhdfs.enabled").lower() == "false" else ""


def hadoop_command() -> str:
    """The path of the hadoop command, "" if there is none. Tasks on nodes do not have the PATH of a shell."""
    homes = [os.environ.get(name) for name in _HOMES]
    candidates = [*(f"{home}/bin/hadoop" for home in homes if home), shutil.which("hadoop"), *_USUAL_PATHS]
    return next((path for path in candidates if path and os.access(path, os.X_OK)), "")


def shell_reason(messages: str) -> str:
    """Why a `hadoop fs` command failed: its last message. Hadoop names both hosts for a missing ticket, but not the ticket.

    >>> shell_reason("ls: DestHost:destPort a:9000. Client cannot authenticate via:[TOKEN, KERBEROS]")
    'there is no valid Kerberos ticket: run kinit'
    """
    last = messages.strip().split("\n")[-1]
    return NO_TICKET if any(sign in last for sign in _NO_TICKET) else last


def _listed(setting: Setting, service: str, is_own: bool) -> list[str]:
    """HOST:PORT of each name node of a service, from the configuration; "" if it has none."""
    key = "dfs.namenode.http-address"
    names = [name.strip() for name in setting(f"dfs.ha.namenodes.{service}").split(",") if name.strip()]
    if names:
        return [setting(f"{key}.{service}.{name}") for name in names]
    return [setting(f"{key}.{service}") or (setting(key) if is_own else "")]


def _web_address(address: str, service: str) -> str:
    """`address` as a URL. A name node that listens on all addresses is on the host of the file system."""
    host, _, port = address.rpartition(":")
    return f"http://{_host(service) if host in _ANY_HOST else host}:{port or PORT}"


def _host(authority: str) -> str:
    return authority.partition(":")[0]


def _settings() -> Setting:
    """A function from a name to its value, "" if it is not set. The environment is looked up before the files."""
    values: dict[str, str] = {}
    folder = os.environ.get("HADOOP_CONF_DIR", "")
    for name in _FILES if folder else ():
        values.update(_properties(Path(folder) / name))

    def setting(name: str) -> str:
        return os.environ.get(re.sub(r"\W", "_", name)) or values.get(name, "")

    return setting


def _properties(path: Path) -> dict[str, str]:
    try:
        tree = ElementTree.fromstring(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ElementTree.ParseError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    pairs = ((entry.findtext("name", ""), entry.findtext("value", "")) for entry in tree.iter("property"))
    return {name.strip(): value.strip() for name, value in pairs}
