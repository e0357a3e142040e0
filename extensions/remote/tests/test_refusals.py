"""Whom a server, and a client, refuse."""

from __future__ import annotations

import json
import socket
import struct
import time

import pytest

import tensorplug as tp
from tensorplug_remote import ConnectionLostError, Limits, Server, connection, handshake, settings
from tensorplug_remote import server as server_module
from tensorplug_remote.framing import LONGEST_MESSAGE, Channel, _body_tag, _tag
from tensorplug_remote.session import Session

SECRET = b"0123456789abcdef"


def opened(address):
    name = f"remote:{address}"
    with tp.use_backend(name):
        result = (tp.asarray([1.0, 2.0]) * 2).tolist()
    tp.remove_backend(name)
    return result


def spoken(address, message, payload=b"", *, version=handshake.VERSION):
    """Say something in place of the client's part of the handshake; return the answer."""
    with socket.create_connection((address.host, address.port), 10) as raw:
        channel = Channel(raw, 10, 1 << 20)
        hello, _ = channel.receive(idle=10)
        assert hello[:2] == ["tensorplug", version]
        channel.send(message, payload)
        return channel.receive(idle=10)[0]


@pytest.mark.parametrize("by", ["variable", "file"])
def test_a_secret_lets_those_in_who_know_it(monkeypatch, tmp_path, by):
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    with Server("cpu", secret=SECRET) as serving:
        if by == "variable":
            monkeypatch.setenv("TENSORPLUG_REMOTE_SECRET", SECRET.decode())
        else:
            monkeypatch.setenv("TENSORPLUG_REMOTE_SECRET_FILE", str(path))
        assert opened(serving.address) == [2.0, 4.0]


@pytest.mark.parametrize(
    ("theirs", "ours", "reason"),
    [
        (SECRET, "fedcba9876543210", "the client does not know the secret"),
        (SECRET, None, "the client does not know the secret"),
        (b"", "fedcba9876543210", "the client does not know the secret"),
    ],
)
def test_a_wrong_secret_is_refused(monkeypatch, theirs, ours, reason):
    if ours:
        monkeypatch.setenv("TENSORPLUG_REMOTE_SECRET", ours)
    refused = pytest.raises(tp.errors.BackendUnavailableError, match=f"refuses: {reason}")
    with Server("cpu", secret=theirs) as serving, refused:
        opened(serving.address)


def test_a_server_that_does_not_know_the_secret_is_refused(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_REMOTE_SECRET", SECRET.decode())
    proves = handshake.Keys.proves
    monkeypatch.setattr(  # a server that lets everybody in
        handshake.Keys,
        "proves",
        lambda keys, purpose, proof: purpose == "client" or proves(keys, purpose, proof),
    )
    refused = pytest.raises(
        tp.errors.BackendUnavailableError, match="refuses: it does not know the secret"
    )
    with Server("cpu", secret=b"another of 16 bytes") as serving, refused:
        opened(serving.address)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_only_loopback_needs_no_secret(host):
    with pytest.raises(tp.errors.SettingsError, match="needs a secret"):
        Server("cpu", host)


def test_an_unknown_version_is_refused(server):
    assert spoken(server.address, ["open", 99, "", "", {}]) == [
        "refused",
        "version 99 of the protocol is unknown: this is 1",
    ]


def test_a_server_of_an_unknown_version_is_refused():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Channel(theirs, 10, 1 << 20).send(["tensorplug", 99, "nonce"])
        with pytest.raises(handshake.RefusedError, match="it speaks version 99 of the protocol"):
            handshake.ask(Channel(ours, 10, 1 << 20), b"", {})


@pytest.mark.parametrize("name", ["version", "byteorder", "real", "integral"])
def test_what_must_be_the_same_is_compared(monkeypatch, server, name):
    mine = {**connection.expectations(), name: "other"}
    monkeypatch.setattr(connection, "expectations", lambda: mine)
    with pytest.raises(tp.errors.BackendUnavailableError, match=f"{name} is .* 'other' at the"):
        opened(server.address)


def test_a_client_that_says_nothing_is_sent_away(monkeypatch):
    monkeypatch.setattr(server_module, "_GREETING", 0.5)
    with Server("cpu", limits=Limits(clients=1)) as serving:
        with socket.create_connection(("127.0.0.1", serving.address.port), 10) as silent:
            deadline = time.monotonic() + 20
            while silent.recv(1 << 16):
                assert time.monotonic() < deadline
        assert opened(serving.address) == [2.0, 4.0]


def test_no_more_clients_than_allowed(connect):
    refused = pytest.raises(tp.errors.BackendUnavailableError, match="has 1 clients already")
    with Server("cpu", limits=Limits(clients=1)) as serving, connect(serving.address), refused:
        opened(f"localhost:{serving.address.port}")


def head(length, size, key=b""):
    made = struct.pack("<IQ", length, size)
    return made + _tag(key, 0, made)


@pytest.mark.parametrize("sizes", [(LONGEST_MESSAGE + 1, 0), (2, 5000), (2, 1 << 60)])
def test_an_oversized_frame_is_refused_before_it_is_read(server, sizes):
    with socket.create_connection((server.address.host, server.address.port), 10) as raw:
        raw.sendall(head(*sizes))
        channel = Channel(raw, 10, 1 << 20)
        channel.receive(idle=10)
        answer, _ = channel.receive(idle=10)
    assert answer[0] == "refused"
    assert answer[1].startswith(f"a frame with {sizes[0]} bytes of message and {sizes[1]} of data")


def test_an_oversized_tensor_is_refused(connect):
    limits = Limits(message=1 << 16)
    with Server("cpu", limits=limits) as serving, connect(serving.address) as backend:
        backend.largest_buffer = 1 << 30  # a client that does not keep to it
        numbers = list(range(20_000))
        with pytest.raises(ConnectionLostError, match="too long: at most 1048576 and 65536"):
            tp.asarray(numbers).numpy()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[",
        '"open"',
        "[" * 100_000,
        "\ud800",
        "[1e999999999999999999999]",
        "[" + "9" * 9999 + "]",
    ],
    ids=["object", "cut", "text", "deep", "surrogate", "infinite", "digits"],
)
def test_what_is_no_message_is_refused(server, text):
    with socket.create_connection((server.address.host, server.address.port), 10) as raw:
        channel = Channel(raw, 10, 1 << 20)
        channel.receive(idle=10)
        data = text.encode(errors="surrogatepass")
        first = head(len(data), 0)
        raw.setblocking(True)
        raw.sendall(first + data + _body_tag(b"", first[-16:], data, b""))
        raw.setblocking(False)
        assert channel.receive(idle=10)[0][0] == "refused"


PLAN = ["plan", [], 1, "Exp", {}, [["float32", 2]], "Exp"]
UPLOAD = ["upload", [], 2, ["float32", 2]]
UNFIT = {
    "no kind": [[1, 2]],
    "an unknown kind": [["exec", [], "import os"]],
    "an unknown kernel": [["plan", [], 1, "os.system", {}, [], ""]],
    "a kernel that is only decomposed": [["plan", [], 1, "Swish", {}, [], ""]],
    "a number twice": [PLAN, PLAN],
    "a number of a tensor again": [UPLOAD, UPLOAD],
    "a result twice": [["plan", [], 1, "TopK", {"k": 1}, [["float32", 1], ["int32", 1]], ""],
                       UPLOAD, ["call", [], 1, [2], [3, 3]]],
    "text for a number": [["plan", [], "1", "Exp", {}, [], ""]],
    "a boolean for a number": [["upload", [], True, ["float32", 2]]],
    "a list for a number": [["upload", [], [1], ["float32", 2]]],
    "a list that is free": [["sync", [[1]], 5]],
    "an unknown tensor": [PLAN, ["call", [], 1, [7], [8]]],
    "an unknown plan": [UPLOAD, ["call", [], 1, [2], [8]]],
    "too many results": [PLAN, UPLOAD, ["call", [], 1, [2], [8, 9]]],
    "a dtype that there is not": [["upload", [], 2, ["float31", 2]]],
    "strings": [["upload", [], 2, ["string", 2]]],
    "a negative size": [["upload", [], 2, ["float32", -2]]],
    "fewer bytes": [["upload", [], 2, ["float32", 3]]],
    "an attribute of an unknown kind": [["plan", [], 1, "Exp", {"a": {"code": "1"}}, [], ""]],
    "an attribute of two kinds": [["plan", [], 1, "Exp", {"a": {"float": "nan", "x": 1}}, [], ""]],
    "reading what is not there": [["read", [], 5, 1]],
}  # fmt: skip


@pytest.mark.parametrize("messages", UNFIT.values(), ids=UNFIT)
def test_messages_that_do_not_fit_are_refused(messages):
    session = Session({"Exp", "TopK"}, 1 << 20)
    *before, last = json.loads(json.dumps(messages))
    with tp.use_backend("cpu"):
        for message in before:
            assert session.handle(message, bytearray(8)) is None
        with pytest.raises(
            tp.errors.TensorplugError,
            match=r"number|kind|kernel|tensor|plan|dtype|"
            r"type|bytes|attribute|message",
        ):
            session.handle(last, bytearray(8))


def test_what_a_client_says_about_results_is_not_believed():
    session = Session({"Fill", "Exp"}, 1 << 20)
    attributes = {"shape": [1 << 30], "value": 0, "dtype": {"dtype": "float32"}}
    with tp.use_backend("cpu"):
        session.handle(["plan", [], 1, "Fill", attributes, [["float32", 1]], "Fill"], bytearray())
        session.handle(["call", [], 1, [], [2]], bytearray())
        _, answer = session.handle(["read", [], 5, 2], bytearray())
        assert answer.error[0] == "KernelOutputError"
        session.handle(
            ["plan", [], 3, "Fill", attributes, [["float32", 1 << 30]], "F"], bytearray()
        )
        session.handle(["call", [], 3, [], [4]], bytearray())
        _, answer = session.handle(["read", [], 5, 4], bytearray())
        assert answer.error[0] == "BackendMemoryError"


def test_bytes_of_booleans_become_booleans():
    session = Session(set(), 1 << 20)
    with tp.use_backend("cpu"):
        session.handle(["upload", [], 2, ["bool", 3]], bytearray(b"\0\1\7"))
        _, answer = session.handle(["read", [], 5, 2], bytearray())
    assert bytes(answer.payload) == b"\0\1\1"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return the path of a certificate for localhost, with its key."""
    pytest.importorskip("cryptography")
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(pem))
    return path


def test_tls(certificate, monkeypatch):
    context = settings.server_context(str(certificate), None)
    with Server("cpu", "localhost", secret=SECRET, tls=context) as serving:
        assert str(serving.address).startswith("tls://localhost:")
        monkeypatch.setenv("TENSORPLUG_REMOTE_SECRET", SECRET.decode())
        with pytest.raises(tp.errors.BackendUnavailableError, match="certificate verify failed"):
            opened(serving.address)
        monkeypatch.setenv("TENSORPLUG_REMOTE_CERTIFICATES", str(certificate))
        assert opened(serving.address) == [2.0, 4.0]
        with pytest.raises(tp.errors.BackendUnavailableError, match="certificate verify failed"):
            opened(f"tls://127.0.0.1:{serving.address.port}")  # another name
        monkeypatch.setattr(server_module, "_GREETING", 1.0)
        with pytest.raises(tp.errors.BackendUnavailableError, match=r"refuses|does not answer"):
            opened(f"localhost:{serving.address.port}")  # without TLS


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ADDRESS", "nowhere", "'nowhere' is no address"),
        ("ADDRESS", "host:0", "'host:0' is no address"),
        ("ADDRESS", "http://host:80", "is no address"),
        ("TIMEOUT", "soon", "from 0.1 to 86400 seconds, got 'soon'"),
        ("TIMEOUT", "nan", "from 0.1 to 86400 seconds, got 'nan'"),
        ("SECRET", "short", "at least 16 bytes, got 5"),
        ("SECRET_FILE", "/no/such/file", "cannot be read"),
        ("CERTIFICATES", "/no/such/file", "cannot be used"),
    ],
)
def test_settings(monkeypatch, server, name, value, words):
    monkeypatch.setenv("TENSORPLUG_REMOTE_ADDRESS", f"tls://{server.address}")
    monkeypatch.setenv(f"TENSORPLUG_REMOTE_{name}", value)
    with pytest.raises(tp.errors.SettingsError, match=words):
        tp.set_backend("remote")


def test_no_address_is_a_backend_that_is_not_available(monkeypatch):
    monkeypatch.delenv("TENSORPLUG_REMOTE_ADDRESS", raising=False)
    with pytest.raises(tp.errors.BackendUnavailableError, match="names 0 servers"):
        tp.set_backend("remote")
