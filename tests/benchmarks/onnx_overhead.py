"""What nodes of ONNX models cost beside kernels: ``python tests/benchmarks/onnx_overhead.py``.

Chains of 200 nodes on 4 x 4 numbers, less those of one node: least processor microseconds of a
node, in rounds that alternate. NumPy calls the same function in a loop. Adds of a compiled model
become one kernel; products do not.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx

if TYPE_CHECKING:
    from collections.abc import Callable

NODES = 200
CALLS = 20
FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "Add": (np.add, tp.add),
    "MatMul": (np.matmul, tp.matmul),
}


def chain(op_type: str, count: int) -> tensorplug_onnx.Model:
    """Return a model of so many nodes, each of the one before and a constant."""
    nodes = [
        helper.make_node(op_type, [f"v{at}", "c"], [f"v{at + 1}"], name=f"n{at}")
        for at in range(count)
    ]
    kinds = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4])
        for name in ("v0", f"v{count}")
    ]
    constant = numpy_helper.from_array(np.eye(4, dtype=np.float32), "c")
    graph = helper.make_graph(nodes, "chain", kinds[:1], kinds[1:], [constant])
    opset = helper.make_opsetid("", 20)
    return tensorplug_onnx.load(helper.make_model(graph, opset_imports=[opset]))


def repeated(function: Callable[[Any, Any], Any], x: Any, c: Any) -> Callable[[], Any]:
    """Return a call of the function so often as the chain has nodes."""

    def call() -> Any:
        y = x
        for _ in range(NODES):
            y = function(y, c)
        return y

    return call


def contenders(op_type: str) -> dict[str, tuple[Callable[[], Any], Callable[[], Any] | None]]:
    """Return calls of the chain, each with one of a single node to be taken off."""
    x, c = np.ones((4, 4), np.float32), np.eye(4, dtype=np.float32)
    on_device = tp.asarray(x)
    one, many = chain(op_type, 1), chain(op_type, NODES)
    one_program, program = one.compile(), many.compile()
    of_numpy, of_ours = FUNCTIONS[op_type]
    return {
        "NumPy": (repeated(of_numpy, x, c), None),
        "tensorplug": (repeated(of_ours, on_device, tp.asarray(c)), None),
        "node by node": (lambda: many(on_device), lambda: one(on_device)),
        "compiled": (lambda: program(on_device), lambda: one_program(on_device)),
    }


def least(calls: dict[Any, Callable[[], Any]], rounds: int) -> dict[Any, float]:
    """Return the least processor microseconds of each call."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.process_time()
            for _ in range(CALLS):
                call()
            found[name] = min(found[name], 1e6 * (time.process_time() - began) / CALLS)
    return found


def main() -> None:
    """Print a row for each op type and way to run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--backend", default="cpu")
    options = parser.parse_args()
    tp.set_backend(options.backend)
    print(f"{'op type':8} {'by':14} {'us a node':>10} {'us a call':>10}")
    for op_type in FUNCTIONS:
        calls: dict[Any, Callable[[], Any]] = {}
        for name, (many, one) in contenders(op_type).items():
            calls[name, NODES] = many
            if one is not None:
                calls[name, 1] = one
        for call in calls.values():
            call()  # compiles
        spent = least(calls, options.rounds)
        for name, count in calls:
            if count == NODES:
                fixed = spent.get((name, 1), 0.0)
                nodes = NODES - ((name, 1) in spent)
                each = (spent[name, NODES] - fixed) / nodes
                print(f"{op_type:8} {name:14} {each:10.3f} {fixed:10.2f}")


if __name__ == "__main__":
    main()
