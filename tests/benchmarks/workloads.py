"""The workloads: each library does the same work on the same numbers and waits for the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Workload
from peers import available, backends, on, torch_device, torch_tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Call = Callable[[], object]

LARGE = 1 << 24  # float32 elements: 64 MB


def elementwise(name: str, size: int, numpy_op: Any, op: str, operands: int) -> Workload:
    """One elementwise op with new results."""
    rng = np.random.default_rng(0)
    arrays = [rng.random(size, dtype=np.float32) + 0.5 for _ in range(operands)]
    contenders: dict[str, Call] = {"numpy": lambda: numpy_op(*arrays)}
    ours = getattr(tp, op)
    if "cpu" in backends():
        tp.set_backend("cpu")
        tensors = [tp.asarray(array) for array in arrays]
        contenders["tensorplug cpu"] = lambda: ours(*tensors)
    for backend in backends():
        if backend != "cpu":
            contenders[f"tensorplug {backend}"] = on(backend, lambda: _op(ours, arrays))
    if available("torch"):
        import torch

        theirs, tensors = getattr(torch, op), [torch_tensor(array) for array in arrays]
        contenders["torch"] = lambda: theirs(*tensors)
    if available("jax"):
        import jax

        jax_op, passed = getattr(jax.numpy, op), [jax.numpy.asarray(array) for array in arrays]
        contenders["jax"] = lambda: jax_op(*passed).block_until_ready()
    return Workload(name, "numpy", contenders)


def _op(ours: Callable[..., object], arrays: list[Any]) -> Call:
    tensors = [tp.asarray(array) for array in arrays]
    return lambda: ours(*tensors)


def operator() -> Workload:
    """``x + y`` on 16 elements: the overhead of the operator over NumPy's own call."""
    x = np.linspace(0, 1, 16, dtype=np.float32)
    tp.set_backend("cpu")
    a, b = tp.asarray(x), tp.asarray(x[::-1].copy())
    y = x[::-1].copy()
    contenders: dict[str, Call] = {"numpy": lambda: x + y, "tensorplug cpu": lambda: a + b}
    if available("torch"):
        p, q = torch_tensor(x), torch_tensor(y)
        contenders["torch"] = lambda: p + q
    return Workload("operator + on 16", "numpy", contenders)


def chain() -> Workload:
    """Forward and backward of ten binary ops on 16 elements."""
    x = np.linspace(0.5, 1, 16, dtype=np.float32)
    y = np.linspace(1, 0.5, 16, dtype=np.float32)
    tp.set_backend("cpu")
    a, b = tp.asarray(x), tp.asarray(y)
    gradient = tp.grad(_ten_ops)
    contenders: dict[str, Call] = {"tensorplug cpu": lambda: gradient(a, b)}
    baseline = "tensorplug cpu"
    if available("torch"):
        import torch

        p, q = torch_tensor(x).requires_grad_(), torch_tensor(y)
        ones = torch.ones(16, device=torch_device())
        contenders["torch"] = lambda: torch.autograd.grad(_ten_ops(p, q), p, ones)
        baseline = "torch"
    if available("jax"):
        import jax

        pull = jax.grad(lambda first, second: _ten_ops(first, second).sum())
        c, d = jax.numpy.asarray(x), jax.numpy.asarray(y)
        contenders["jax eager"] = lambda: pull(c, d).block_until_ready()
        fast = jax.jit(pull)
        contenders["jax jit"] = lambda: fast(c, d).block_until_ready()
    return Workload("gradient of ten ops on 16", baseline, contenders)


def _ten_ops(p: Any, q: Any) -> Any:
    z = p
    for _ in range(5):
        z = z * q
        z = z + p
    return z


def random_numbers(what: str) -> Workload:
    """A million random float32; NumPy and PyTorch use their own Philox generators."""
    size = 1 << 20
    generator = np.random.Generator(np.random.Philox(0))
    theirs = {"uniform": generator.random, "normal": generator.standard_normal}[what]
    contenders: dict[str, Call] = {"numpy": lambda: theirs(size, dtype=np.float32)}
    draw = getattr(tp.random, what)
    for backend in backends():
        key_there = on(backend, lambda: lambda: tp.random.key(0))()
        contenders[f"tensorplug {backend}"] = on(
            backend, lambda key=key_there: lambda: draw(key, (size,))
        )
    if available("torch"):
        import torch

        torch_draw = {"uniform": torch.rand, "normal": torch.randn}[what]
        contenders["torch"] = lambda: torch_draw(size, device=torch_device())
    if available("jax"):
        import jax

        jax_key, jax_draw = jax.random.key(0), getattr(jax.random, what)
        contenders["jax"] = lambda: jax_draw(jax_key, (size,)).block_until_ready()
    return Workload(f"{what}, a million", "numpy", contenders)


def matmul(size: int) -> Workload:
    """One square matrix product in float32."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    contenders: dict[str, Call] = {"numpy": lambda: x @ y}
    for backend in backends():
        contenders[f"tensorplug {backend}"] = on(backend, lambda: _op(tp.matmul, [x, y]))
    if available("torch"):
        p, q = torch_tensor(x), torch_tensor(y)
        contenders["torch"] = lambda: p @ q
    return Workload(f"matmul {size}", "numpy", contenders)


LAUNCHES = 100
BARE_ADD = """
kernel void run(global const float *a, global const float *b, global float *y) {
  const size_t i = get_global_id(0);
  if (i < 16) y[i] = a[i] + b[i];
}"""


def has_opencl() -> bool:
    """Return whether the OpenCL backend is installed and has a device."""
    if not available("tensorplug_opencl"):
        return False
    from tensorplug_opencl import device

    return bool(device.available())


def opencl_launch() -> Workload:
    """Many small adds and one wait: the cost of an op compared with the driver's enqueue.

    The baseline enqueues one prepared kernel, whose arguments are set already, again and again:
    no library over pyopencl can be faster.
    """
    x = np.linspace(0, 1, 16, dtype=np.float32)
    with tp.use_backend("opencl"):
        a, b = tp.asarray(x), tp.asarray(x + 1)

    def ours() -> None:
        with tp.use_backend("opencl"):
            for _ in range(LAUNCHES):
                tp.add(a, b)
            tp.synchronize()

    contenders: dict[str, Call] = {"pyopencl enqueue": _enqueue(x), "tensorplug opencl": ours}
    return Workload(f"{LAUNCHES} adds of 16", "pyopencl enqueue", contenders)


def _enqueue(x: Any) -> Call:
    import pyopencl as cl

    from tensorplug_opencl import device

    context = cl.Context([device.choose(None).device])
    queue = cl.CommandQueue(context)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=x) for _ in range(3)]
    kernel = cl.Kernel(cl.Program(context, BARE_ADD).build(["-w"]), "run")
    kernel.set_args(*buffers)

    def run(_alive: object = buffers) -> None:  # a kernel does not keep its arguments alive
        for _ in range(LAUNCHES):
            cl.enqueue_nd_range_kernel(queue, kernel, (128,), (128,))
        queue.finish()

    return run


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of every workload, so that only the chosen ones are prepared."""
    yield "operator", operator
    yield "add16", lambda: elementwise("add 16", 16, np.add, "add", 2)
    if has_opencl():
        yield "opencl_launch", opencl_launch
        from starting import workloads as of_starting

        yield from of_starting()
    yield "chain", chain
    yield "add64MB", lambda: elementwise("add 64 MB", LARGE, np.add, "add", 2)
    yield "exp64MB", lambda: elementwise("exp 64 MB", LARGE, np.exp, "exp", 1)
    for name, function in (("atan2", np.arctan2), ("log1p", np.log1p), ("round", np.rint)):
        operands = 2 if name == "atan2" else 1
        yield (
            f"{name}_4MB",
            lambda name=name, function=function, operands=operands: elementwise(
                f"{name} 4 MB", 1 << 20, function, name, operands
            ),
        )
    yield "matmul64", lambda: matmul(64)
    yield "matmul512", lambda: matmul(512)
    from reading import workloads as of_reading

    yield from of_reading()
    from moving import workloads as of_moving

    yield from of_moving()
    from pointwise import workloads as of_pointwise

    yield from of_pointwise()
    from order import workloads as of_order

    yield from of_order()
    from gathers import workloads as of_gathers

    yield from of_gathers()
    yield "uniform", lambda: random_numbers("uniform")
    yield "normal", lambda: random_numbers("normal")
    from algebra import workloads as of_algebra

    yield from of_algebra()
    from convolutions import workloads as of_convolution

    yield from of_convolution()
    from images import workloads as of_images

    yield from of_images()
    from networks import workloads as of_networks

    yield from of_networks()
    from models import workloads as of_models

    yield from of_models()
    from loops import workloads as of_loops

    yield from of_loops()
    from lengths import workloads as of_lengths

    yield from of_lengths()
    from derivatives import workloads as of_derivatives

    yield from of_derivatives()
    from per_example import workloads as of_each_example

    yield from of_each_example()
    from large import workloads as of_large

    yield from of_large()
