"""`cdxmill serve`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cdxmill.cli.command import command, print_summary
from cdxmill.errors import OK
from cdxmill.options.clusters import ServeOptions
from cdxmill.options.option import Argument, Needs, Option


@dataclass(kw_only=True, repr=False, eq=False)
class ServeArguments(ServeOptions):
    """The command line of `serve`."""

    cluster: Annotated[str, Argument("CLUSTER", "ZipNum cluster: directory.")]
    config_only: Annotated[
        Path | None,
        Option(metavar="DIR", help="Write config.yaml to this directory and do not start pywb.", parser=Path),
    ] = None
    replace: Annotated[bool, Option(help="Replace an existing output."), Needs("config_only")] = False


@command
def serve(arguments: ServeArguments) -> int:
    """Show the archived pages of CLUSTER in a browser, with pywb.

    cdxmill writes the configuration of pywb to a temporary directory and starts pywb's command wayback. It prints
    the address of a page to open. Ctrl-C stops the server. pywb must be installed: pip install './cdxmill[serve]', with a checkout in ./cdxmill.

    Examples:
        cdxmill serve crawl
        cdxmill serve crawl --config-only pywb
    """
    from cdxmill.commands.clusters.serve import serve as serve_cluster
    from cdxmill.commands.clusters.serve import write_config

    if arguments.config_only is None:
        return serve_cluster(arguments.cluster, arguments)
    path = write_config(arguments.cluster, arguments.config_only, arguments, arguments.replace)
    print_summary(
        f"{path}: written; start pywb: wayback -d {path.parent} -b {arguments.bind} -p {arguments.port}",
        quiet=False,
    )
    return OK
