"""Bad specs, dtypes, backends, exports and checks of gradients: data of test_bad_input."""

from __future__ import annotations

import numpy as np

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    DTypeError,
    RegistrationError,
)
from tensorplug.plugin import KernelSpec

X = np.ones((3, 4), np.float32)
FULL = np.ones((1,) * 64, np.float32)
LONG = 10**5000  # Python does not write it: it has more digits than allowed
LONE = "\ud800"  # a surrogate, which UTF-8 cannot encode


def cyclic(width=1):
    """Return a list that contains itself; if more than once, its elements grow exponentially."""
    result = []
    result += [result] * width
    return result


def infer(x):
    return x


CASES = [  # id, call, error, what the message says
    (
        "name of a spec",
        lambda: KernelSpec(LONG, ("x",), infer),
        RegistrationError,
        "kernel spec: name must be text, got an integer of 16610 bits",
    ),
    (
        "inputs of a spec",
        lambda: KernelSpec("Own", FULL, infer),
        RegistrationError,
        "kernel spec 'Own': inputs must be a tuple of names, got array(",
    ),
    (
        "an input of a spec",
        lambda: KernelSpec("Own", (1,), infer),
        RegistrationError,
        "inputs must be a tuple of names, got (1,)",
    ),
    (
        "outputs of a spec",
        lambda: KernelSpec("Own", ("x",), infer, outputs=FULL),
        RegistrationError,
        "outputs must be a tuple of names, got array(",
    ),
    (
        "promote of a spec",
        lambda: KernelSpec("Own", ("x",), infer, promote=FULL),
        RegistrationError,
        "promote must be a tuple of names, got array(",
    ),
    (
        "typed_by of a spec",
        lambda: KernelSpec("Own", ("x",), infer, typed_by=cyclic()),
        RegistrationError,
        "typed_by must be the name of an input, got [[...]]",
    ),
    (
        "inexact of a spec",
        lambda: KernelSpec("Own", ("x",), infer, inexact=X),
        RegistrationError,
        "inexact must be True or False, got array(",
    ),
    (
        "attributes of a spec",
        lambda: KernelSpec("Own", ("x",), infer, attributes={"a": 1}),
        RegistrationError,
        "attributes must be Attributes by name, got {'a': 1}",
    ),
    (
        "accepts of a spec",
        lambda: KernelSpec("Own", ("x",), infer, accepts={"x": X}),
        RegistrationError,
        "accepts must be",
    ),
    ("dtype of no name", lambda: tp.DType(LONG, "float", 4), DTypeError, "DType: name must be te"),
    ("dtype of no size", lambda: tp.DType("float32", "float", X), DTypeError, "itemsize an inte"),
    ("unknown new dtype", lambda: tp.DType(LONE, "float", 4), DTypeError, "NumPy has no dtype"),
    (
        "device of DLPack",
        lambda: tp.ones(2).__dlpack__(dl_device=""),
        ArgumentError,
        "__dlpack__: dl_device must be two integers, got ''",
    ),
    (
        "members of a device of DLPack",
        lambda: tp.ones(2).__dlpack__(dl_device=(X, X)),
        ArgumentError,
        "__dlpack__: dl_device must be an integer, got array(",
    ),
    (
        "version of DLPack",
        lambda: tp.ones(2).__dlpack__(max_version="10"),
        ArgumentError,
        "__dlpack__: max_version must be two integers, got '10'",
    ),
    (
        "copy of DLPack",
        lambda: tp.ones(2).__dlpack__(copy=X),
        ArgumentError,
        "__dlpack__: copy must be True, False or None, got array(",
    ),
    (
        "copy of from_dlpack",
        lambda: tp.from_dlpack(X, copy=X),
        ArgumentError,
        "from_dlpack: copy must be True, False or None, got array(",
    ),
    (
        "dtype of NumPy",
        lambda: tp.ones(2).__array__(LONG),
        DTypeError,
        "__array__: NumPy has no dtype an integer of 16610 bits",
    ),
    (
        "copy of NumPy",
        lambda: tp.ones(2).__array__(copy=X),
        ArgumentError,
        "__array__: copy must be True, False or None, got array(",
    ),
    ("devices of an array", lambda: tp.devices(X), ArgumentError, "must be text, such as 'cpu'"),
    ("devices of a number", lambda: tp.devices(LONG), ArgumentError, "an integer of 16610 bits"),
    ("backend of an array", lambda: tp.set_backend(X), ArgumentError, "must be text, such as 'cp"),
    (
        "name of a new backend",
        lambda: tp.register_backend(LONG, lambda: None),
        ArgumentError,
        "an integer of 16610 bits cannot be the name of a backend",
    ),
    (
        "kernels of a new backend",
        lambda: tp.register_backend("own", lambda: None, kernels=None),
        ArgumentError,
        "register_backend: kernels must be tables of kernels, got None",
    ),
    (
        "many kernels of a new backend",
        lambda: tp.register_backend("own", cyclic(), kernels=range(10**12)),
        ArgumentError,
        "register_backend: [[...]] is not a function",
    ),
    ("flag of debug", lambda: tp.debug(leaks=X), ArgumentError, "debug: leaks must be True or Fa"),
    (
        "has_aux",
        lambda: tp.vjp(tp.exp, X, has_aux=X),
        ArgumentError,
        "has_aux must be True or False, got array(",
    ),
    (
        "copy of astype",
        lambda: tp.astype(X, int, copy=X),
        ArgumentError,
        "astype: copy must be Tr",
    ),
    (
        "copy of reshape",
        lambda: tp.reshape(X, 12, copy=X),
        ArgumentError,
        "reshape: copy must be True or False, got array(",
    ),
    (
        "copy of asarray",
        lambda: tp.asarray(X, copy=X),
        ArgumentError,
        "asarray: copy must be True",
    ),
    (
        "to an array",
        lambda: tp.ones(2).to(X),
        ArgumentError,
        "must be text, such as 'cpu', got ar",
    ),
    (
        "f of check_grads",
        lambda: tp.testing.check_grads(None, (X,)),
        ArgumentError,
        "check_grads: f must be a function, got None",
    ),
    (
        "args of check_grads",
        lambda: tp.testing.check_grads(tp.exp, 1),
        ArgumentError,
        "check_grads: args must be a list or tuple, got 1",
    ),
    (
        "order of check_grads",
        lambda: tp.testing.check_grads(tp.exp, (X,), order=X),
        ArgumentError,
        "check_grads: order must be an integer, got array(",
    ),
    (
        "modes of check_grads",
        lambda: tp.testing.check_grads(tp.exp, (X,), modes=1),
        ArgumentError,
        "check_grads: modes must be of 'vjp' and 'jvp', got 1",
    ),
    *(
        (
            f"{name} of check_grads",
            lambda name=name: tp.testing.check_grads(tp.exp, (X,), **{name: LONG}),
            ArgumentError,
            f"check_grads: {name} does not fit into float64: an integer of 16610 bits",
        )
        for name in ("rtol", "atol", "eps")
    ),
]
