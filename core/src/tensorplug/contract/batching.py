"""The table of batching rules: how kernels run on all examples of ``vmap`` at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tensorplug.contract import signatures
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug.contract.spec import KernelSpec


F = TypeVar("F", bound="Callable[..., Any]")
Kind = Literal["rule", "elementwise", "leading", "folded"]


@dataclass(frozen=True, slots=True)
class BatchingEntry:
    """How one kernel is batched: see the methods of ``BatchingTable``, which ``kind`` names.

    ``rule``, ``asks``: the function of kind "rule", and its keyword-only parameters. ``names``:
    the attributes of kind "leading", the inputs of kind "folded".
    """

    spec: KernelSpec
    kind: Kind
    rule: Callable[..., Any] | None = None
    asks: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    override: bool = False


def batching_entry(
    spec: KernelSpec,
    kind: Kind,
    rule: Callable[..., Any] | None = None,
    names: Iterable[str] = (),
    *,
    override: bool = False,
) -> BatchingEntry:
    """Check a batching rule against ``spec`` and return its entry.

    Raises:
        RegistrationError: the rule's parameters are not the inputs, then attributes, ``batched``,
            ``size`` or ``out``; or one of ``names`` is not an attribute (or input) of the spec.

    """
    role = f"batching rule of {spec.name!r}"
    asks: tuple[str, ...] = ()
    if rule is not None:
        allowed = (*spec.attributes, "attributes", "batched", "size", "out")
        asks = signatures.check_split(rule, role, spec.input_names, allowed)
    known = spec.input_names if kind == "folded" else tuple(spec.attributes)
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise RegistrationError(
            f"{role}: it has no {', '.join(map(repr, unknown))}; possible are {', '.join(known)}"
        )
    return BatchingEntry(spec, kind, rule, asks, tuple(names), override)


class BatchingTable:
    """Batching rules, by kernel name.

    A kernel needs none. Those with a scalar expression are elementwise. Without a rule, ``vmap``
    batches the calls of a kernel's decomposition; without one of these either, it calls the kernel
    once per example.
    """

    def __init__(self) -> None:
        self._entries: dict[str, BatchingEntry] = {}

    def of(self, spec: KernelSpec, *, override: bool = False) -> Callable[[F], F]:
        """Decorate a function of all examples: inputs by name, then what it asks keyword-only.

        Inputs whose names are in ``batched`` have the axis of the examples in front (all members
        of a list have it); the others are what each example gets. Other keywords: any attribute
        (``attributes``: a dict of all of them), ``size``, the number of examples, and ``out``, the
        output type of one example (a tuple of them if there are several outputs). It calls ops,
        and returns the output with the axis of the examples in front, or a list of outputs, or
        ``NotImplemented`` for calls that it does not serve::

            @batching.of(TRANSPOSE)
            def transpose(x, *, perm):
                return permute_dims(x, (0, *(axis + 1 for axis in perm)))

        """

        def decorate(rule: F) -> F:
            self._add(batching_entry(spec, "rule", rule, override=override))
            return rule

        return decorate

    def elementwise(self, *specs: KernelSpec, override: bool = False) -> None:
        """State that shapes broadcast, and that each element depends on those in its place."""
        for spec in specs:
            self._add(batching_entry(spec, "elementwise", override=override))

    def leading(self, spec: KernelSpec, *axes: str, override: bool = False) -> None:
        """State that the kernel does the same along any further axis in front of its inputs.

        All of these get it. ``axes``: the attributes that number axes, which then count one more.
        """
        self._add(batching_entry(spec, "leading", names=axes, override=override))

    def folded(self, spec: KernelSpec, *inputs: str, override: bool = False) -> None:
        """State that axis 0 of ``inputs`` and of the outputs is a batch.

        The examples join it. This serves calls in which no other input depends on the example.
        """
        self._add(batching_entry(spec, "folded", names=inputs, override=override))

    def _add(self, entry: BatchingEntry) -> None:
        if self._entries.setdefault(entry.spec.name, entry) is not entry:
            raise RegistrationError(
                f"the batching rule of {entry.spec.name!r} is in this table twice"
            )

    def __iter__(self) -> Iterator[BatchingEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
