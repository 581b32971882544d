"""`cdxmill serve`: its options, its help and the call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cdxmill.cli.command import command
from cdxmill.cli.output import print_summary
from cdxmill.errors import OK
from cdxmill.options.option import Argument, Needs, Option


@dataclass(kw_only=True, repr=False, eq=False)
class ServeArguments:
    """The command line of `serve`."""

    cluster: Annotated[str, Argument("CLUSTER", "ZipNum cluster: directory.")]
    archives: Annotated[
        str | None,
        Option(
            metavar="LOCATION",
            help="Where the archives are: a directory, a URL prefix, or a path index (a text file; each line: file"
            " name, tab, path or URL). Default: the archives.tsv that build wrote to CLUSTER.",
        ),
    ] = None
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on. 0: any free port.")] = 8080
    bind: Annotated[
        str,
        Option(metavar="ADDRESS", help="IP address to listen on. 0.0.0.0: all addresses of this machine."),
    ] = "127.0.0.1"
    title: Annotated[
        str | None,
        Option(metavar="TEXT", help="Title of the collection. Default: the name of the directory."),
    ] = None
    config_only: Annotated[
        Path | None,
        Option(metavar="DIR", help="Write config.yaml to this directory and do not start pywb.", parser=Path),
    ] = None
    replace: Annotated[bool, Option(help="Replace an existing output."), Needs("config_only")] = False


@command
def serve(arguments: ServeArguments) -> int:
    """Show the archived pages of CLUSTER in a browser, with pywb.

    cdxmill writes the configuration of pywb to a temporary directory and starts pywb's command wayback. It prints
    the address of a page to open. Ctrl-C stops the server. pywb must be installed: pip install 'cdxmill[serve]'.

    Examples:
        cdxmill serve crawl
        cdxmill serve crawl --config-only pywb
    """
    from cdxmill.commands.clusters.serve import ServeOptions, write_config
    from cdxmill.commands.clusters.serve import serve as serve_cluster

    options = ServeOptions(
        archives=arguments.archives, title=arguments.title, bind=arguments.bind, port=arguments.port
    )
    if arguments.config_only is None:
        return serve_cluster(arguments.cluster, options)
    path = write_config(arguments.cluster, arguments.config_only, options, arguments.replace)
    print_summary(
        f"{path}: written; start pywb: wayback -d {path.parent} -b {options.bind} -p {options.port}",
        quiet=False,
    )
    return OK
