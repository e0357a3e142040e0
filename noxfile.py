"""The checks of the Makefile, for machines without make; ``python -m nox --list`` shows them."""

from __future__ import annotations

import sys

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "venv"

_EXTENSIONS = ("llm", "onnx", "science", "train")
_EXAMPLES = ("attention", "dask_backend", "minimal_backend", "op_package")


def _install(session: nox.Session, *groups: str) -> None:
    """Install everything, editable, as ``make install`` does."""
    runtime = "" if sys.platform == "darwin" else "[cpu]"  # Intel's is for Linux and Windows
    paths = [
        "./core",
        "./backends/loops",
        "./backends/cpu[jit]",
        f"./backends/gpu_opencl{runtime}",
        "./tests/conformance",
        *(f"./extensions/{name}" for name in _EXTENSIONS),
        *(f"./plugins_example/{name}" for name in _EXAMPLES),
    ]
    chosen = [argument for group in groups for argument in ("--group", group)]
    session.install("--upgrade", "pip>=25.1")  # a new environment may have one without --group
    session.install(*(argument for path in paths for argument in ("-e", path)), *chosen)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests that are not slow; arguments after ``--`` go to pytest."""
    _install(session, "dev", "demo")
    chosen = session.posargs or ["--numprocesses", "auto", "-m", "not packaging and not slow"]
    session.run("python", "-m", "pytest", *chosen)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and imports."""
    _install(session, "dev", "demo")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-logo")


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    _install(session, "dev", "demo")
    session.run("python", "-m", "tensorplug.testing.stubs")
    session.run("mypy")


@nox.session
def conformance(session: nox.Session) -> None:
    """Certify a backend: ``nox --session conformance -- cpu --level 2``."""
    _install(session)
    backend, *options = session.posargs or ["cpu", "--level", "2"]
    session.run("tensorplug-conformance", "run", "--backend", backend, *options)


@nox.session
def site(session: nox.Session) -> None:
    """Build the documentation site into ``out/site``."""
    _install(session, "dev", "demo", "site")
    options = ("--fail-on-warning", "--keep-going", "-q")
    session.run("sphinx-build", *options, "-c", "docs/site", "docs", "out/site")


@nox.session
def demo(session: nox.Session) -> None:
    """Train on handwritten digits, on each backend but the examples' in turn."""
    _install(session, "demo")
    options = ("--output", "out/digits.png")
    left_out = {"TENSORPLUG_DISABLE_PLUGINS": "dask,minimal,webgpu"}
    session.run("python", "docs/examples/digits/train.py", *options, env=left_out)
