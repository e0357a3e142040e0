"""What is installed of a distribution: the digest of its wheel, and of its files."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

# Written by the installer, not part of what was installed.
_INSTALLERS: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")


class AlteredError(Exception):
    """Installed files are not those that were installed; the message names one."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A distribution as it is installed.

    ``files``: SHA-256 over the names and digests of its files, the same wherever a wheel is
    installed. ``wheel``: SHA-256 of the wheel, where the installer noted it. ``editable``: its
    sources lie elsewhere, and ``files`` does not cover them.
    """

    name: str
    version: str
    files: str
    wheel: str = ""
    editable: bool = False

    def __str__(self) -> str:
        how = "editable, sources not covered" if self.editable else "installed files"
        return f"{self.name} {self.version}, {how}"


def installed(name: str) -> Installed | None:
    """Return what is installed under a distribution's name; None if nothing is.

    Raises:
        AlteredError: a file differs from its digest in RECORD, or is gone.

    """
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    source: dict[str, Any] = json.loads(found.read_text("direct_url.json") or "{}")
    archive = source.get("archive_info", {})
    wheel = archive.get("hashes", {}).get("sha256", "")
    if not wheel and str(archive.get("hash", "")).startswith("sha256="):
        wheel = archive["hash"].removeprefix("sha256=")
    editable = bool(source.get("dir_info", {}).get("editable"))
    files = _of_files(found, editable=editable)
    return Installed(found.name, found.version, files, wheel, editable)


def _of_files(found: Distribution, *, editable: bool) -> str:
    """Return a digest over the files that RECORD lists, but for scripts and compiled modules.

    Those of an editable install only say where its sources are.
    """
    whole = hashlib.sha256()
    for path in sorted(found.files or (), key=str):
        if path.hash is None or path.name in _INSTALLERS or ".." in path.parts:
            continue
        try:
            content = Path(path.locate()).read_bytes()
        except OSError as error:
            raise AlteredError(f"{found.name}: {path} cannot be read: {error}") from error
        digest = hashlib.new(path.hash.mode, content).digest()
        recorded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == path.hash.value
        if not (recorded or editable):
            raise AlteredError(f"{found.name}: {path} was altered after it was installed")
        whole.update(f"{path.as_posix()} {hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()
