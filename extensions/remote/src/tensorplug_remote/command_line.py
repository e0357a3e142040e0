"""The command ``tensorplug-remote``: ``serve``.

The exit status is 0 if all went well, 1 if something is not there or wrong, 2 if the command is.
"""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING

from tensorplug.errors import TensorplugError
from tensorplug_remote import settings
from tensorplug_remote.server import Limits, Server

if TYPE_CHECKING:
    from collections.abc import Sequence


def run() -> None:
    """Run the command of this process, and exit."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run a command; return its exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        tls = None
        if options.certificate:
            tls = settings.server_context(options.certificate, options.key)
        server = Server(
            options.backend,
            options.host,
            options.port,
            secret=settings.read_secret(options.secret_file),
            tls=tls,
            limits=Limits(options.message_limit, options.memory_limit, options.clients),
        )
    except (TensorplugError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201  # a command
        return 1
    with server:
        print(f"serving {server.about['device']} at {server.address}", flush=True)  # noqa: T201
        try:
            server.wait()
        except KeyboardInterrupt:
            return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorplug-remote", description="Offer a backend over the network."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    told = "serve a backend until Ctrl-C"
    serve = commands.add_parser("serve", help=told, description=told)
    serve.add_argument("--backend", required=True, metavar="NAME", help="cpu, opencl:1, ...")
    serve.add_argument("--host", default="127.0.0.1", help="where to listen (%(default)s)")
    serve.add_argument("--port", type=int, default=7654, help="0: any (%(default)s)")
    serve.add_argument(
        "--secret-file",
        metavar="FILE",
        help=f"with what clients must know; else {settings.SECRET_FILE} or {settings.SECRET}",
    )
    serve.add_argument("--certificate", metavar="PEM", help="speak TLS, with this certificate")
    serve.add_argument("--key", metavar="PEM", help="of the certificate, if it is not in its file")
    limits = Limits()
    for name, default, told in (
        ("message-limit", limits.message, "the largest tensor"),
        ("memory-limit", limits.memory, "all tensors of a client"),
    ):
        serve.add_argument(
            f"--{name}",
            type=settings.read_size,
            default=default,
            metavar="SIZE",
            help=f"{told} ({default >> 30}GiB)",
        )
    serve.add_argument(
        "--clients", type=int, default=limits.clients, help="at the same time (%(default)s)"
    )
    return parser
