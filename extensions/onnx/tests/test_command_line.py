"""What the commands print: texts of a model are shown, and nothing in them acts on a terminal."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tensorplug_onnx.command_line import main

EVIL = "x\x1b]0;owned\x07\x1b[2J\x9b1m\u202e[red]"
SHOWN = r"x\x1b]0;owned\x07\x1b[2J\x9b1m\u202e[red]"


def write(path, op_type="Relu", domain=""):
    """Write a model whose names are hostile."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in (EVIL, f"{EVIL}y")
    )
    node = helper.make_node(op_type, [EVIL], [f"{EVIL}y"], name=EVIL, domain=domain)
    opsets = [helper.make_opsetid("", 21)]
    functions = []
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
        inner = [helper.make_node("Relu", ["a"], ["b"])]
        functions = [helper.make_function(domain, op_type, ["a"], ["b"], inner, opsets[:1])]
    graph = helper.make_graph([node], "graph", [x], [y])
    model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("command", ["info", "run", "bench --rounds 1", "profile"])
@pytest.mark.parametrize(("op_type", "domain"), [("Relu", ""), (EVIL, EVIL)])
def test_names_of_a_hostile_model(command, op_type, domain, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    path = write(tmp_path / "model.onnx", op_type, domain)
    name, *more = command.split()
    main([name, str(path), "--backend", "cpu", *more])
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert text.replace("\n", "").isprintable(), ascii(text)
    if command != "profile":
        assert SHOWN in said.out + said.err


def test_errors_of_a_hostile_model(tmp_path, capsys):
    path = write(tmp_path / "model.onnx", EVIL)
    assert main(["run", str(path), "--backend", "cpu"]) == 1
    said = capsys.readouterr()
    assert said.err.replace("\n", "").isprintable(), ascii(said.err)
    assert SHOWN in said.err.replace("\\\\", "\\")


def test_the_inputs_are_what_they_were(tmp_path, capsys):
    """Names are escaped where they are printed, and nowhere else."""
    path = write(tmp_path / "model.onnx")
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, **{EVIL: np.array([-1, 2], np.float32)})
    assert main(["run", str(path), "--backend", "cpu", "--inputs", str(inputs)]) == 0
    assert "[0. 2.]" in capsys.readouterr().out


def npz(name, content):
    """Return an archive with one file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def npy(shape):
    """Return an array of float32 that has a header, and no elements."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


BAD_INPUTS = {
    "nothing": b"",
    "no archive": b"PK\x03\x04" + bytes(100),
    "pickled": pickle.dumps({}),
    "one array": npy((0,)),
    "pickled within": npz("x.npy", npy((1,)).replace(b"<f4", b"|O ") + pickle.dumps([0])),
    "cut": npz("x.npy", npy((9,)) + bytes(36))[:-30],
    "damaged": npz("x.npy", npy((9,)) + bytes(36)).replace(bytes(36), bytes([7]) * 36),
    "fewer than it says": npz("x.npy", npy((1 << 20,)) + bytes(4)),
    "more than any memory": npz("x.npy", npy((1 << 50,)) + bytes(4)),
    "negative": npz("x.npy", npy((-3,)) + bytes(4)),
}


@pytest.mark.parametrize("content", BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_inputs_that_cannot_be_read_are_an_error_of_one_line(content, tmp_path, capsys):
    path = write(tmp_path / "model.onnx")
    inputs = tmp_path / "inputs.npz"
    inputs.write_bytes(content)
    assert main(["run", str(path), "--backend", "cpu", "--inputs", str(inputs)]) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {inputs} is no archive of arrays that can be read: ")
    assert "Traceback" not in said.err
