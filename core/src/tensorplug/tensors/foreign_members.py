"""What other libraries' arrays have and tensors do not: attributes whose error says what to write.

They are descriptors that raise, because a ``__getattr__`` would make every access to an attribute
slower: CPython specializes those of classes without one (section "Specialization" of PEP 659).
``hasattr`` is False, and ``dir`` of a tensor leaves them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from tensorplug.dispatch.tensor import Tensor
from tensorplug.system.distributions import EXTENSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable


GRADIENTS: Final = "gradients are taken of functions: write tensorplug.grad(function)(x)"
_VALUES: Final = "tensors are values: write x[...] = y, x += y and the like"
_STRIDES: Final = "a tensor has no strides, so there is nothing to do"

MEMBERS: Final = {
    "H": "write x.mT.conj()",
    "add_": _VALUES,
    "allclose": "write tensorplug.allclose(x, y)",
    "amax": "write x.max(axis)",
    "amin": "write x.min(axis)",
    "argwhere": "write tensorplug.argwhere(x)",
    "array": "write x.numpy()",
    "arraySync": "write x.numpy()",
    "at": "write x[i] = y, which changes x, but no other tensor that shares its data",
    "backward": GRADIENTS,
    "bfloat16": "write x.astype('bfloat16')",
    "block_until_ready": "write tensorplug.synchronize()",
    "bmm": "write x @ y",
    "bool": "write x.astype('bool')",
    "byte": "write x.astype('uint8')",
    "cast": "write x.astype(dtype)",
    "chunk": "write x.split(n, axis)",
    "clamp": "write x.clip(low, high)",
    "clone": "write x.copy()",
    "conjugate": "write x.conj()",
    "contiguous": _STRIDES,
    "copy_": _VALUES,
    "cpu": "write x.to('cpu')",
    "cuda": "write x.to('opencl')",
    "data": "write x.numpy()",
    "dataSync": "write x.numpy()",
    "detach": "write tensorplug.stop_gradient(x)",
    "diag": "write tensorplug.diag(x)",
    "dim": "write x.ndim",
    "div": "write x / y",
    "div_": _VALUES,
    "double": "write x.astype('float64')",
    "eq": "write x == y",
    "expand": "write x.broadcast_to(shape)",
    "expand_as": "write x.broadcast_to(y.shape)",
    "fill": _VALUES,
    "fill_": _VALUES,
    "flat": "write x.ravel()",
    "float": "write x.astype('float32')",
    "ge": "write x >= y",
    "grad": GRADIENTS,
    "grad_fn": GRADIENTS,
    "gt": "write x > y",
    "half": "write x.astype('float16')",
    "index_select": "write x.take(indices, axis)",
    "int": "write x.astype('int32')",
    "is_contiguous": _STRIDES,
    "is_cuda": "read x.device",
    "is_leaf": GRADIENTS,
    "isclose": "write tensorplug.isclose(x, y)",
    "itemsize": "read x.dtype.itemsize",
    "le": "write x <= y",
    "logsumexp": "write x.log_sum_exp(axis)",
    "long": "write x.astype('int64')",
    "lt": "write x < y",
    "masked_fill": "write tensorplug.where(mask, value, x)",
    "mm": "write x @ y",
    "movedim": "write x.moveaxis(source, destination)",
    "mul": "write x * y",
    "mul_": _VALUES,
    "narrow": "write x[start : start + length]",
    "ne": "write x != y",
    "neg": "write -x",
    "nelement": "read x.size",
    "numel": "read x.size",
    "outer": "write tensorplug.outer_product(x, y)",
    "permute": "write x.permute_dims(axes)",
    "ptp": "write x.max() - x.min()",
    "rank": "read x.ndim",
    "register_hook": "to give a function a gradient of your own, use tensorplug.custom_grad",
    "repeat_interleave": "write x.repeat(n, axis)",
    "requires_grad": GRADIENTS,
    "requires_grad_": GRADIENTS,
    "reshape_as": "write x.reshape(y.shape)",
    "retain_grad": GRADIENTS,
    "searchsorted": "write tensorplug.searchsorted(x, values)",
    "stride": _STRIDES,
    "strides": _STRIDES,
    "sub": "write x - y",
    "sub_": _VALUES,
    "t": "write x.T",
    "toFloat": "write x.astype('float32')",
    "toInt": "write x.astype('int32')",
    "to_numpy": "write x.numpy()",
    "tobytes": "write x.numpy().tobytes()",
    "type_as": "write x.astype(y.dtype)",
    "unbind": "write x.unstack(axis)",
    "unsqueeze": "write x.expand_dims(axis)",
    "view": "write x.reshape(shape), or tensorplug.bitcast(x, dtype) for another dtype",
    "view_as": "write x.reshape(y.shape)",
    "zero_": _VALUES,
}
"""What to write instead, by the name in another library."""

FUNCTIONS: Final = {
    name: f"write tensorplug.{name}(x)"
    for name, source in EXTENSIONS.items()
    if "." not in name and ":" in source
}
"""The same for functions of extensions; an extension that is installed may have methods there."""


class _Absent:
    """An attribute that raises; an op of that name may take its place."""

    __slots__ = ("_advice", "_name")

    def __init__(self, name: str, advice: str) -> None:
        self._name = name
        self._advice = advice

    def __get__(self, tensor: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(
            f"'Tensor' object has no attribute {self._name!r}; {self._advice}", name=self._name
        )

    def __repr__(self) -> str:
        return f"<not an attribute of tensors; {self._advice}>"


def attach() -> None:
    """Add to Tensor those of ``MEMBERS`` and ``FUNCTIONS`` that it does not have."""
    hints = {name: _Absent(name, advice) for name, advice in (FUNCTIONS | MEMBERS).items()}
    new = {name: hint for name, hint in hints.items() if not hasattr(Tensor, name)}
    for name, member in {**new, "__dir__": _present}.items():
        setattr(Tensor, name, member)


def _present(tensor: Any) -> Iterable[str]:
    members = vars(Tensor)
    return [name for name in object.__dir__(tensor) if not isinstance(members.get(name), _Absent)]
