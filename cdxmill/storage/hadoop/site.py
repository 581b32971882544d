"""Find the WebHDFS addresses of the name nodes for an hdfs:// URL, and the hadoop command.

The addresses are those of the first source that has any:

CDXMILL_WEBHDFS=http://HOST:PORT[,http://HOST:PORT]     set by the user
dfs_namenode_http_address, fs_defaultFS, ...            set by Hadoop streaming in the environment of its tasks
core-site.xml, hdfs-site.xml in HADOOP_CONF_DIR
port 9870 of the URL's host                             Hadoop's default
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from cdxmill.errors import InputError, UsageError

PORT = 9870
STAMP = "user.cdxmill"
"""The extended attribute that has the stamp of a file."""
_ANY_HOST = ("0.0.0.0", "")
_FILES = ("core-site.xml", "hdfs-site.xml")

_HOMES = ("HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_PREFIX")
_USUAL_PATHS = (
    "/usr/bin/hadoop",
    "/usr/lib/hadoop/bin/hadoop",
    "/opt/hadoop/bin/hadoop",
    "/usr/local/hadoop/bin/hadoop",
)
_given: list[str] = []
"""The hadoop command that `use_command` was given."""

Setting = Callable[[str], str]


def parts_of(url: str) -> tuple[str, str]:
    """HOST[:PORT] of an hdfs URL, and the path in its file system. No character of a path has a meaning.

    >>> parts_of("hdfs://names:8020/a//b%20?/"), parts_of("hdfs:///a"), parts_of("hdfs:/a")  # Hadoop drops an empty host
    (('names:8020', '/a/b%20?'), ('', '/a'), ('', '/a'))
    """
    rest = url.partition(":")[2]
    authority, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", rest, rest)
    if not slash:
        raise InputError(url, "the URL has no path", "use hdfs://[HOST[:PORT]]/PATH")
    return authority, posixpath.normpath("/" + path.lstrip("/"))


def same_location(one: str, other: str) -> bool:
    """Whether two hdfs URLs are the same file or directory. Raises UsageError as `web_addresses`."""
    (host, path), (other_host, other_path) = parts_of(one), parts_of(other)
    return path == other_path and (host == other_host or web_addresses(host) == web_addresses(other_host))


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


def use_command(words: Sequence[str]) -> None:
    """Use this hadoop command from now on: a launcher knows that of its job."""
    _given[:] = words


def hadoop_command() -> list[str]:
    """The hadoop command; empty if there is none. Tasks on nodes do not have the PATH of a shell."""
    homes = [os.environ.get(name) for name in _HOMES]
    candidates = [*(f"{home}/bin/hadoop" for home in homes if home), shutil.which("hadoop"), *_USUAL_PATHS]
    return _given or [path for path in candidates if path and os.access(path, os.X_OK)][:1]


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
    directory = os.environ.get("HADOOP_CONF_DIR", "")
    for name in _FILES if directory else ():
        values.update(_properties(Path(directory) / name))

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
