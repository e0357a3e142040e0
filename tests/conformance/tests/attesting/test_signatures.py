"""Signed reports: what is believed, what is not, and rows that are run again."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.conformance.tests.installing import install
from tests.conformance.tests.reports import sample

from tensorplug_conformance.attesting import digests, statement
from tensorplug_conformance.attesting.digests import AlteredError, installed
from tensorplug_conformance.cli import main
from tensorplug_conformance.reporting import report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "tensorplug-acme"


def _record(site: Path, source: dict[str, Any] | None = None) -> None:
    """Write what an installer writes beside the plugin that ``install`` has put there."""
    info = site / f"{NAME.replace('-', '_')}-1.0.dist-info"
    if source is not None:
        (info / "direct_url.json").write_text(json.dumps(source))
    lines = []
    for path in sorted(site.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            lines.append(f"{path.relative_to(site)},sha256={digest.decode()},{len(content)}")
    (info / "RECORD").write_text("\n".join(lines) + "\n")


@dataclass
class _Signed:
    """A folder with a signed report, the plugin's site folder, and the keys."""

    folder: Path
    site: Path
    keys: Path

    def sign(self, content: dict[str, Any], key: str = "acme", days: int = 30) -> None:
        report.write(content, self.folder)
        statement.sign(self.folder, content, statement.private_key(self.keys / key), days)

    @property
    def envelope(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / statement.ENVELOPE).read_text())
        return content

    def put(self, envelope: Any) -> None:
        (self.folder / statement.ENVELOPE).write_text(json.dumps(envelope))

    def resigned(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the statement, and sign it with the right key."""
        said = json.loads(base64.b64decode(self.envelope["payload"]))
        change(said)
        payload = json.dumps(said).encode()
        key = statement.private_key(self.keys / "acme")
        signature = key.sign(statement._authenticated(payload))
        self.put(
            {
                "payloadType": "application/vnd.in-toto+json",
                "payload": base64.b64encode(payload).decode(),
                "signatures": [{"keyid": "", "sig": base64.b64encode(signature).decode()}],
            }
        )


def _content() -> dict[str, Any]:
    content = sample()
    content["backend"] |= {"name": "acme", "distribution": NAME, "version": "1.0"}
    return content


@pytest.fixture
def signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Signed:
    one = _Signed(tmp_path / "out", tmp_path / "site", tmp_path / "keys")
    install(one.site, "x = 1")
    _record(one.site)
    monkeypatch.syspath_prepend(one.site)
    one.keys.mkdir()
    for name in ("acme", "other"):
        assert main(["key", str(one.keys / name)]) == 0
    one.sign(_content())
    return one


def _verified(one: _Signed, key: str = "acme", rows: int = 0) -> int:
    public = str(one.keys / f"{key}.pub")
    return main(["verify", str(one.folder), "--key", public, "--rows", str(rows)])


def test_says_who_when_and_what(signed: _Signed, capsys: pytest.CaptureFixture[str]) -> None:
    assert _verified(signed, rows=3) == 0
    said = capsys.readouterr().out.partition("the report holds")[2].replace("\n", " ")
    files = installed_digest(signed)
    for part in ("signed by acme, key", f"sha256 {files}", "nothing was repeated"):
        assert part in said


def installed_digest(one: _Signed) -> str:
    said = json.loads(base64.b64decode(one.envelope["payload"]))
    return str(said["subject"][1]["digest"]["sha256"])


def test_the_statement_is_a_test_result_of_in_toto(signed: _Signed) -> None:
    said = json.loads(base64.b64decode(signed.envelope["payload"]))
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert said["predicate"]["result"] == "FAILED"  # the sample has a row that fails
    assert said["predicate"]["failedTests"] == ["Neg float32 native"]
    whole = hashlib.sha256((signed.folder / "report.json").read_bytes()).hexdigest()
    assert said["subject"][0] == {"name": "report.json", "digest": {"sha256": whole}}
    names = [one["name"] for one in said["predicate"]["configuration"]]
    assert {"device", "drivers", "cases", "suite"} <= set(names)


def _edit(one: _Signed) -> None:
    path = one.folder / "report.json"
    content = json.loads(path.read_text())
    content["seconds"] += 1
    path.write_text(json.dumps(content))


def _put(**parts: Any) -> Callable[[_Signed], None]:
    return lambda one: one.put({**one.envelope, **parts})


def _wrong_kind(said: dict[str, Any]) -> None:
    said["predicateType"] = "https://slsa.dev/provenance/v1"


FORGERIES: dict[str, tuple[Callable[[_Signed], object], str]] = {
    "another report": (_edit, "the report is not the one that was signed"),
    "another key": (lambda one: one.sign(_content(), "other"), "not signed by the key"),
    "expired": (lambda one: one.sign(_content(), days=-1), "the signature is valid from"),
    "another statement": (_put(payload="e30="), "not signed by the key"),
    "no base64": (_put(payload="%"), "is no signed statement"),
    "no signature": (_put(signatures=[]), "not signed by the key"),
    "another type": (_put(payloadType="text/plain"), "signs 'text/plain'"),
    "no envelope": (lambda one: one.put([]), "is no signed statement"),
    "another predicate": (lambda one: one.resigned(_wrong_kind), "statement of another kind"),
    "no time": (lambda one: one.resigned(lambda x: x.pop("predicate")), "not say what it must"),
    "none": (lambda one: (one.folder / statement.ENVELOPE).unlink(), "is no signed statement"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_statement_is_not_believed(
    signed: _Signed, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    forge, message = FORGERIES[name]
    forge(signed)
    assert _verified(signed) == 1
    assert message in capsys.readouterr().out


def _other_wheel(site: Path) -> None:
    (site / "acme_acme.py").write_text("x = 2")
    _record(site)


INSTALLED: dict[str, tuple[Callable[[Path], object], str]] = {
    "the same": (lambda _: None, ""),
    "another wheel": (_other_wheel, "but certified is tensorplug-acme 1.0, installed files: "),
    "altered": (lambda site: (site / "acme_acme.py").write_text("x = 2"), "was altered after"),
    "a file is gone": (lambda site: (site / "acme_acme.py").unlink(), "but certified is "),
    "editable": (
        lambda site: _record(site, {"url": "file:///x", "dir_info": {"editable": True}}),
        "1.0, editable, sources not covered: ",
    ),
    "nothing": (shutil.rmtree, "tensorplug-acme is not installed"),
}


@pytest.mark.parametrize("name", INSTALLED)
def test_what_is_installed_is_compared_with_what_was_certified(signed: _Signed, name: str) -> None:
    change, message = INSTALLED[name]
    found, _ = statement.checked(signed.folder, statement.public_key(signed.keys / "acme.pub"))
    assert found is not None
    change(signed.site)
    other = statement.other_plugin(found, NAME)
    assert message in other
    assert bool(other) == bool(message)


def test_altered_files_are_not_signed(signed: _Signed) -> None:
    (signed.site / "acme_acme.py").write_text("x = 2")
    with pytest.raises(AlteredError, match=r"acme_acme\.py was altered"):
        installed(NAME)
    with pytest.raises(statement.SignatureError, match="was altered"):
        signed.sign(_content())


@pytest.mark.parametrize("archive", [{"hash": "sha256=abc"}, {"hashes": {"sha256": "abc"}}])
def test_the_digest_of_a_wheel_is_known_where_the_installer_notes_it(
    signed: _Signed, archive: dict[str, Any]
) -> None:
    before = installed(NAME)
    assert before is not None
    _record(signed.site, {"url": "file:///acme.whl", "archive_info": archive})
    assert installed(NAME) == digests.Installed(NAME, "1.0", before.files, "abc")
    signed.sign(_content())
    said = json.loads(base64.b64decode(signed.envelope["payload"]))
    assert said["subject"][2] == {
        "name": "tensorplug-acme 1.0, wheel",
        "digest": {"sha256": "abc"},
    }


def test_keys_are_never_overwritten_and_private_ones_are_secret(
    signed: _Signed, capsys: pytest.CaptureFixture[str]
) -> None:
    private = signed.keys / "acme"
    assert private.stat().st_mode & 0o077 == 0
    before = private.read_bytes()
    assert main(["key", str(private)]) == 2
    assert private.read_bytes() == before
    for command in (["verify", str(signed.folder), "--key", str(private)],):
        assert main(command) == 2
    assert "is no key in PEM" in capsys.readouterr().out


def test_a_registry_shows_what_holds(signed: _Signed, capsys: pytest.CaptureFixture[str]) -> None:
    folder = signed.folder.parent / "registry"
    for name in ("good", "tampered", "strange"):
        signed.sign(_content(), "other" if name == "strange" else "acme")
        shutil.copytree(signed.folder, folder / "acme" / name)
    (folder / "keys").mkdir()
    shutil.copy(signed.keys / "acme.pub", folder / "keys")
    signed.folder = folder / "acme" / "tampered"
    _edit(signed)
    assert main(["registry", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "wrong acme/tampered: the report is not the one that was signed" in said
    assert "wrong acme/strange: no key of the registry has signed it" in said
    table = (folder / "README.md").read_text()
    assert table.count("report.json)") == 1
    assert "tensorplug-acme 1.0" in table
    assert "(acme/good/report.json) |" in table
    for name in ("tampered", "strange"):
        shutil.rmtree(folder / "acme" / name)
    assert main(["registry", str(folder)]) == 0
    shutil.rmtree(folder / "keys")
    assert main(["registry", str(folder)]) == 2


def test_rows_that_passed_are_run_again(
    signed: _Signed, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    signed.folder = tmp_path / "cpu"
    selected = ["--kernels", "Neg", "--dtypes", "int8,int16", "--jobs", "1"]
    command = ["run", "--backend", "cpu", "--level", "2", *selected]
    key = str(signed.keys / "acme")
    assert main([*command, "--sign", key]) == 2
    assert "--sign needs --report" in capsys.readouterr().out
    assert main([*command, "--report", str(signed.folder), "--sign", key]) == 0
    assert _verified(signed, rows=1) == 0
    assert "1 rows were repeated with seed" in capsys.readouterr().out
    content = report.read(signed.folder)
    for row in content["rows"]:
        row["status"] = row["vendor"] = "pass widened"  # which is not true
    content["totals"]["rows"] = {"pass widened": 2}
    signed.sign(content)
    assert _verified(signed, rows=2) == 1
    assert "2 are not as reported" in capsys.readouterr().out
