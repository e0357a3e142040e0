"""A report as an in-toto test result, signed: https://in-toto.io/attestation/test-result.

The envelope is DSSE's, the signature Ed25519. Its subjects are the report and the plugin; suite,
core, extensions, device and drivers are its configuration.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import pip_install
from tensorplug_conformance.attesting.digests import AlteredError, Installed, installed
from tensorplug_conformance.reporting.report import NAME, ReportError, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ENVELOPE: Final = "report.intoto.json"
TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://in-toto.io/attestation/test-result/v0.1"
SIGNED: Final = "https://tensorplug.github.io/tensorplug/attestation/signed/v1"
_PAYLOAD: Final = "application/vnd.in-toto+json"
_PUBLIC: Final = ".pub"
_DISTRIBUTIONS: Final = ("tensorplug-conformance", "tensorplug")


class SignatureError(Exception):
    """A key cannot be used, or nothing can be signed; the message says why."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a signed statement says. ``plugin``: digests by the names of the plugin's subjects."""

    key: str
    at: datetime
    until: datetime
    plugin: Mapping[str, str]
    editable: bool


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise SignatureError(
            f"signatures need cryptography: {pip_install('tensorplug-conformance[sign]')}"
        ) from None
    return serialization, ed25519


def make_keys(path: Path) -> str:
    """Write a private key to ``path``, and the public one beside it; return the latter's id.

    Raises:
        SignatureError: a file of that name exists, or cannot be written.

    """
    serialization, ed25519 = _library()
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    try:
        for place, content, mode in (
            (path, private, 0o600),
            (Path(f"{path}{_PUBLIC}"), public, 0o644),
        ):
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as f:
                f.write(content)
    except OSError as error:
        raise SignatureError(f"the key cannot be written: {error}") from error
    return key_id(key.public_key())


def private_key(path: Path) -> Any:
    """Return the private key of a file.

    Raises:
        SignatureError: it has none that signs by Ed25519.

    """
    return _key(path, "load_pem_private_key", "Ed25519PrivateKey", password=None)


def public_key(path: Path) -> Ed25519PublicKey:
    """Return the public key of a file; errors as of ``private_key``."""
    key: Ed25519PublicKey = _key(path, "load_pem_public_key", "Ed25519PublicKey")
    return key


def _key(path: Path, load: str, kind: str, **more: Any) -> Any:
    serialization, ed25519 = _library()
    try:
        key = getattr(serialization, load)(path.read_bytes(), **more)
    except (OSError, ValueError, TypeError) as error:
        raise SignatureError(f"{path} is no key in PEM: {error}") from error
    if not isinstance(key, getattr(ed25519, kind)):
        raise SignatureError(f"{path} is no {kind}")
    return key


def key_id(key: Ed25519PublicKey) -> str:
    """Return the id of a public key: SHA-256 of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def sign(folder: Path, report: Mapping[str, Any], key: Any, days: int) -> Path:
    """Write the signed statement on the report in ``folder`` beside it; return its path.

    ``days``: for how many it is valid.

    Raises:
        SignatureError: the plugin is not installed, or its files were altered.

    """
    now = datetime.now(UTC).replace(microsecond=0)
    public = key.public_key()
    name = report["backend"].get("distribution", "")
    plugin, *others = [_installed(each) for each in (name, *_DISTRIBUTIONS)]
    subjects = [
        _resource(NAME, hashlib.sha256((folder / NAME).read_bytes()).hexdigest()),
        _resource(str(plugin), plugin.files),
    ]
    if plugin.wheel:
        subjects.append(_resource(f"{plugin.name} {plugin.version}, wheel", plugin.wheel))
    backend, suite = report["backend"], report["suite"]
    about = {
        "device": backend.get("device", ""),
        "drivers": json.dumps(backend.get("drivers", {}), sort_keys=True),
        "cases": report["denominator"]["sha256"],
        "suite": json.dumps(suite, sort_keys=True),
    }
    failed = [row for row in report["rows"] if row["status"] == "fail"]
    statement = {
        "_type": TYPE,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": {
            "result": "FAILED" if verdict(report, report["profile"])["blocked_by"] else "PASSED",
            "configuration": [
                *(_resource(str(one), one.files) for one in others),
                *(
                    {"name": what, "content": base64.b64encode(text.encode()).decode()}
                    for what, text in about.items()
                ),
            ],
            "failedTests": [f"{row['kernel']} {row['dtype']} {row['mode']}" for row in failed],
            SIGNED: {
                "at": now.isoformat(),
                "until": (now + timedelta(days=days)).isoformat(),
                "editable": plugin.editable,
            },
        },
    }
    payload = json.dumps(statement, indent=1).encode()
    signature = key.sign(_authenticated(payload))
    envelope = {
        "payloadType": _PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": key_id(public), "sig": base64.b64encode(signature).decode()}],
    }
    path = folder / ENVELOPE
    path.write_text(json.dumps(envelope, indent=1) + "\n", "utf-8")
    return path


def _installed(name: str) -> Installed:
    try:
        found = installed(name)
    except AlteredError as error:
        raise SignatureError(str(error)) from error
    if found is None:
        raise SignatureError(
            f"only a plugin that is installed is signed: no distribution {name!r}"
        )
    return found


def _resource(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest}}


def _authenticated(payload: bytes) -> bytes:
    """Return what is signed: DSSE's pre-authentication encoding."""
    kind = _PAYLOAD.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def checked(path: Path, key: Ed25519PublicKey) -> tuple[Signature | None, list[str]]:
    """Return what the statement beside a report says, and what is wrong with it.

    ``path``: of the report or of its folder. The statement is None if nothing in it can be
    believed.
    """
    from cryptography.exceptions import InvalidSignature

    place = path / NAME if path.is_dir() else path
    beside = place.with_name(ENVELOPE)
    try:
        envelope = json.loads(beside.read_text("utf-8"))
        payload = base64.b64decode(envelope["payload"], validate=True)
        kind = envelope["payloadType"]
        found = [base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return None, [f"{beside} is no signed statement: {type(error).__name__}: {error}"]
    if kind != _PAYLOAD:
        return None, [f"{beside} signs {kind!r:.60}, not {_PAYLOAD}"]
    for each in found:
        try:
            key.verify(each, _authenticated(payload))
            break
        except InvalidSignature:
            continue
    else:
        return None, [f"{beside} is not signed by the key {key_id(key)[:12]}"]
    try:
        statement = json.loads(payload)
        subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
        kinds = statement["_type"], statement["predicateType"]
        about = statement["predicate"][SIGNED]
        at, until = (datetime.fromisoformat(about[name]) for name in ("at", "until"))
        plugin = {name: digest for name, digest in subjects.items() if name != NAME}
        signature = Signature(key_id(key), at, until, plugin, bool(about["editable"]))
        expired = not at <= datetime.now(UTC) <= until
    except (ValueError, KeyError, TypeError) as error:
        return None, [f"{beside} does not say what it must: {type(error).__name__}: {error}"]
    faults = []
    if kinds != (TYPE, PREDICATE):
        faults.append(f"{beside} is a statement of another kind: {kinds}")
    try:
        content = place.read_bytes()
    except OSError as error:
        raise ReportError(f"{place} cannot be read: {error}") from error
    if subjects.get(NAME) != hashlib.sha256(content).hexdigest():
        faults.append("the report is not the one that was signed")
    if expired:
        faults.append(f"the signature is valid from {at:%Y-%m-%d} to {until:%Y-%m-%d}, not today")
    return signature, faults


def other_plugin(signature: Signature, name: str) -> str:
    """Return how the installed plugin differs from the certified one; empty if it does not."""
    try:
        here = installed(name)
    except AlteredError as error:
        return str(error)
    if here is None:
        return f"{name} is not installed"
    if signature.plugin.get(str(here)) != here.files:
        certified = ", ".join(f"{who}: {digest[:12]}" for who, digest in signature.plugin.items())
        return f"{here}: {here.files[:12]}, but certified is {certified}"
    return ""
