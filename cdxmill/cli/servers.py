"""`cdxmill cdx-server`: its help and the call."""

from __future__ import annotations

from cdxmill.options.cdx_server import CdxServing


def cdx_server(arguments: CdxServing) -> int:
    """Answer CDX queries to each CLUSTER over HTTP.

    Clients ask in the dialect that they know: pywb and Common Crawl (/NAME/cdx, /NAME-index, /collinfo.json), the Wayback
    CDX server (/cdx/search/cdx), OutbackCDX and OpenWayback (/NAME?url=, /NAME?q=), the availability API
    (/wayback/available), and Memento (/NAME/timemap/link/URL, /NAME/timegate/URL). The pages / and /NAME/report are for
    people. Changes of a cluster are seen at once. Ctrl-C and SIGTERM let running answers end; SIGHUP reads the access rules
    again. It needs: pip install './cdxmill[server]', with a checkout in ./cdxmill.

    Examples:
        cdxmill cdx-server crawl
        cdxmill cdx-server web=crawl --port 8090 --replay http://localhost:8080/web/
    """
    from cdxmill.errors import UsageError
    from cdxmill.version import install_extra

    try:
        from cdxmill.server.start import serve
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed; {install_extra('server')}") from None
    return serve(arguments)
