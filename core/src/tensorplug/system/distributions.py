"""The pip commands that messages recommend, for tensorplug's own distributions and others."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from typing import Any, Final

# By backend: the distribution, with the extras that make it run on any machine.
BACKENDS: Final = {"cpu": "tensorplug-cpu", "opencl": "tensorplug-opencl[cpu]"}

# By distribution: its folder in a checkout of tensorplug.
FOLDERS: Final = {
    "tensorplug": "core",
    "tensorplug-cpu": "backends/cpu",
    "tensorplug-opencl": "backends/gpu_opencl",
    "tensorplug-loops": "backends/loops",
    "tensorplug-conformance": "tests/conformance",
    "tensorplug-dask": "plugins_example/dask_backend",
    "tensorplug-llm": "extensions/llm",
    "tensorplug-onnx": "extensions/onnx",
    "tensorplug-remote": "extensions/remote",
    "tensorplug-science": "extensions/science",
    "tensorplug-train": "extensions/train",
    "tensorplug-xla": "plugins_example/xla_backend",
}

# Of ours, that a distribution needs beside the core.
_NEEDED: Final = dict.fromkeys(("tensorplug-cpu", "tensorplug-opencl"), "./backends/loops ")

# By public name: where it is once the extension is installed. The name of the extension's entry
# point follows ``tensorplug_``, and that of its distribution ``tensorplug-``.
EXTENSIONS: Final = {"train": "tensorplug_train"} | {
    f"{part}{name}": f"tensorplug_science.{module}:{name}"
    for part, module, names in (
        ("", "convolution", "convolve"),
        ("", "covariance", "corrcoef cov"),
        ("", "histograms", "histogram"),
        ("", "integration", "trapezoid"),
        ("", "interpolation", "interp"),
        ("", "missing_values", "nan_to_num nanmax nanmean nanmin nanprod nanstd nansum nanvar"),
        ("", "polynomials", "polyfit polyval"),
        ("", "quantiles", "median nanmedian nanpercentile nanquantile percentile quantile"),
        ("linalg.", "matrix_exponential", "expm"),
        ("random.", "random.counts", "binomial poisson"),
        ("random.", "random.simplex", "beta dirichlet laplace multivariate_normal"),
        ("special.", "special.bessel_functions", "i0 i0e i1 i1e j0 j1"),
        ("special.", "special.error_functions", "erfcx erfinv log_ndtr ndtr ndtri"),
        ("special.", "special.gamma_functions", "beta betaln digamma gammaln polygamma zeta"),
        ("special.", "special.incomplete_functions", "betainc gammainc gammaincc"),
        ("special.", "special.entropies", "entr logit sinc xlog1py xlogy"),
    )
    for name in names.split()
}

_REQUIREMENT: Final = re.compile(r"([\w.-]+)(\[[^\]]*\])?", re.ASCII)  # a name, perhaps extras


def backend_cure(name: str) -> str:
    """Return what to do if one of ``BACKENDS`` is not installed: most often, a pip command."""
    package = BACKENDS[name].partition("[")[0].replace("-", "_")
    if not _is_importable(package):
        return f"Try: {pip_install(BACKENDS[name])}"
    return (
        f"The package {package} is here, but its metadata ({package}-*.dist-info), which names "
        "the plugin, is not: a program that is packed, for instance by zipapp or PyInstaller "
        "(--copy-metadata), must contain both"
    )


def _is_importable(package: str) -> bool:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):  # whatever another finder says
        return False
    return spec is not None and spec.origin is not None  # a folder alone is no package


def pip_install(*requirements: str, options: str = "") -> str:
    """Return the command that installs ``requirements``, for a message.

    If tensorplug itself was installed from a folder, an index may lack its distributions. Then
    the text goes on with the command for a checkout, where that has all of them.

    Args:
        requirements: names of distributions, perhaps with extras or versions.
        options: of ``pip install``, such as ``--upgrade``.

    Examples:
        >>> from tensorplug.plugin import pip_install
        >>> pip_install("acme-gpu[cuda]")
        'pip install "acme-gpu[cuda]"'

    """
    start = " ".join(filter(None, ("pip install", options)))
    command = " ".join([start, *map(_quoted, requirements)])
    folders = [_folder(requirement) for requirement in requirements]
    if not all(folders) or not _is_from_a_folder():
        return command
    needed = {_NEEDED.get(requirement.partition("[")[0], "") for requirement in requirements}
    installed = "".join(needed) + " ".join(map(_quoted, folders))
    return f"{command}, or from a checkout: {start} {installed}"


def _quoted(argument: str) -> str:
    return f'"{argument}"' if re.search(r"[^\w./-]", argument) else argument


def _folder(requirement: str) -> str:
    """Return what stands for a requirement in a checkout; "" if nothing does."""
    parts = _REQUIREMENT.fullmatch(requirement)
    if parts is None or parts[1] not in FOLDERS:  # no checkout can promise a version
        return ""
    return f"./{FOLDERS[parts[1]]}{parts[2] or ''}"


def _is_from_a_folder() -> bool:
    """Return whether pip installed tensorplug from a folder (PEP 610)."""
    import importlib_metadata  # for messages only

    try:
        core = importlib_metadata.distribution("tensorplug")
        origin: Any = json.loads(core.read_text("direct_url.json") or "{}")
        return "dir_info" in origin and str(origin["url"]).startswith("file:")
    except (importlib_metadata.PackageNotFoundError, OSError, ValueError, KeyError, TypeError):
        return False  # the message is more important than its hint
