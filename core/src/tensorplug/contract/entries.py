"""Entries of the tables of kernels and decompositions.

What a function asks for is checked here, when its entry is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tensorplug.contract import dtypes as dt
from tensorplug.contract import signatures
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.contract.backend import Backend
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec


OnDevice: TypeAlias = "Callable[[Backend], object]"

KERNEL_EXTRAS = ("attributes", "backend", "out")


class Entry:
    """What tables and registries hold: something that belongs to a kernel, or to one input.

    ``kept_in``: the registry's part for it. ``_titled``: what messages call it, by its fields.
    """

    __slots__ = ()
    spec: KernelSpec
    kept_in: ClassVar[str]
    _titled: ClassVar[str]

    @property
    def key(self) -> Any:
        """What it is known by: the name of the kernel, and of the input if it is for one."""
        return self.spec.name

    @property
    def title(self) -> str:
        """What messages call it."""
        return self._titled.format(self)


@dataclass(frozen=True, slots=True)
class KernelEntry(Entry):
    """One kernel: ``function`` works on buffers, or prepares such a function from types.

    ``prepares``: ``function`` takes input *types* and returns the callable that takes buffers.
    ``dtypes``: the kernel is native only where the dtype of the call is among them. That is the
    dtype of its data (``KernelSpec.dtype_of``): of ``x`` for IsNan, whose output is boolean, and
    of ``params`` for a gather, whose indices are integers.
    ``asks``: the keyword-only parameters, from the attributes, ``backend`` and ``out``.
    ``override``: it is meant to replace a kernel that is registered already.
    ``setup``, ``teardown``: called with the Backend, once for each device that the kernel comes
    to, and once when it leaves it or the device is closed.
    ``fuses``: a backend that compiles groups may compute large calls in one pass of the
    decomposition instead, as it does in the place of its own kernels.
    """

    spec: KernelSpec
    function: Callable[..., Any]
    prepares: bool
    dtypes: frozenset[DType] | None
    asks: tuple[str, ...]
    override: bool = False
    setup: OnDevice | None = None
    teardown: OnDevice | None = None
    fuses: bool = False
    kept_in: ClassVar[str] = "kernels"
    _titled: ClassVar[str] = "kernel {0.spec.name!r}"


@dataclass(frozen=True, slots=True)
class DecompositionEntry(Entry):
    """A kernel spec written with other ops, on tensors.

    ``dtypes``: it serves only where the dtype of the call is among them, as for a kernel.
    ``on_host``: the function takes and returns NumPy arrays instead, in the host's memory.
    ``reads``, ``alone``: see ``DecompositionTable``.
    """

    spec: KernelSpec
    function: Callable[..., Any]
    asks: tuple[str, ...]
    dtypes: frozenset[DType] | None = None
    override: bool = False
    on_host: bool = False
    reads: tuple[str, ...] | None = None
    alone: bool = False
    kept_in: ClassVar[str] = "decompositions"
    _titled: ClassVar[str] = "decomposition of {0.spec.name!r}"


def kernel_entry(
    spec: KernelSpec,
    function: Callable[..., Any],
    *,
    prepares: bool = False,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
    setup: OnDevice | None = None,
    teardown: OnDevice | None = None,
    fuses: bool = False,
) -> KernelEntry:
    """Check ``function`` against ``spec`` and return its entry.

    Raises:
        RegistrationError: when its parameters are not what a kernel of ``spec`` may ask for, or
            ``setup`` or ``teardown`` does not take the backend alone.
        DTypeError: one of ``dtypes`` is not a dtype.

    """
    allowed = (*spec.attributes, *KERNEL_EXTRAS)
    role = f"kernel {spec.name!r}"
    asks = signatures.check_split(function, role, spec.input_names, allowed)
    native = read_dtypes(dtypes, role)
    for what, item in (("setup", setup), ("teardown", teardown)):
        if item is not None:
            signatures.check_split(item, f"{what} of {role}", ("backend",), ())
    return KernelEntry(spec, function, prepares, native, asks, override, setup, teardown, fuses)


def decomposition_entry(
    spec: KernelSpec,
    function: Callable[..., Any],
    *,
    dtypes: Iterable[DType] | None = None,
    override: bool = False,
    on_host: bool = False,
    reads: Sequence[str] | None = None,
    alone: bool = False,
) -> DecompositionEntry:
    """Check a decomposition against ``spec`` and return its entry.

    Raises:
        RegistrationError: when its parameters are not the inputs, then attributes or ``out``; or
            the spec has no attribute that ``reads`` names.

    """
    role = f"decomposition of {spec.name!r}"
    allowed = (*spec.attributes, "attributes", "out")
    asks = signatures.check_split(function, role, spec.input_names, allowed)
    served = read_dtypes(dtypes, role)
    known = None if reads is None else tuple(reads)
    unknown = {*(known or ())} - spec.attributes.keys()
    if unknown:
        raise RegistrationError(f"{role}: reads names {sorted(unknown)}, which are no attributes")
    return DecompositionEntry(spec, function, asks, served, override, on_host, known, alone)


def read_dtypes(dtypes: Iterable[Any] | None, role: str) -> frozenset[DType] | None:
    """Return ``dtypes=`` of a table's method, checked to be dtypes; ``role`` says whose."""
    return None if dtypes is None else frozenset(dt.of(dtype, role) for dtype in dtypes)
