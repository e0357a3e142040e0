"""The registries an engine reads: kernels, gradients, decompositions, and whose they are.

Readers take no lock: a change builds a new ``State`` and swaps it in, all or nothing. Keys are
tuples of names. Each key holds a stack, so that removing an override uncovers what it hid.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from tensorplug.contract.arguments import quoted
from tensorplug.contract.entries import DecompositionEntry, KernelEntry
from tensorplug.contract.owner import PROGRAM, SPEC, Owner
from tensorplug.contract.rule_entries import (
    BatchingEntry,
    GradientEntry,
    TangentEntry,
    stated_batching,
    stated_tangents,
)
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.locks import Lock
from tensorplug.errors import ArgumentError, RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from types import TracebackType


Entry = KernelEntry | GradientEntry | TangentEntry | BatchingEntry | DecompositionEntry
E = TypeVar("E", KernelEntry, GradientEntry, TangentEntry, BatchingEntry, DecompositionEntry)


@dataclass(frozen=True, slots=True, eq=False)
class Owned(Generic[E]):
    """An entry and who registered it."""

    entry: E
    owner: Owner


Stacks = dict[Any, tuple[Owned[E], ...]]


@dataclass(frozen=True, slots=True)
class State:
    """An immutable snapshot of all registered entries.

    Keys: kernels by (kernel name, backend name), gradients and tangents by (kernel name, input
    name), batching rules and decompositions by kernel name.
    """

    version: int = 0
    specs: Mapping[str, KernelSpec] = field(default_factory=dict)
    kernels: Stacks[KernelEntry] = field(default_factory=dict)
    gradients: Stacks[GradientEntry] = field(default_factory=dict)
    tangents: Stacks[TangentEntry] = field(default_factory=dict)
    batchings: Stacks[BatchingEntry] = field(default_factory=dict)
    decompositions: Stacks[DecompositionEntry] = field(default_factory=dict)

    def kernel(self, name: str, backend: str) -> Owned[KernelEntry] | None:
        """Return the kernel in force, or None."""
        stack = self.kernels.get((name, backend))
        return stack[-1] if stack else None

    def gradient(self, name: str, wrt: str) -> Owned[GradientEntry] | None:
        """Return the gradient rule in force for input ``wrt``, or None."""
        stack = self.gradients.get((name, wrt))
        return stack[-1] if stack else None

    def tangent(self, name: str, wrt: str) -> Owned[TangentEntry] | None:
        """Return the tangent rule in force for input ``wrt``: the spec's facts come last."""
        stack = self.tangents.get((name, wrt))
        if stack:
            return stack[-1]
        stated = stated_tangents(self.specs[name]).get(wrt) if name in self.specs else None
        return None if stated is None else Owned(stated, SPEC)

    def batching(self, name: str) -> Owned[BatchingEntry] | None:
        """Return the batching rule in force: the spec's facts come last."""
        stack = self.batchings.get(name)
        if stack:
            return stack[-1]
        stated = stated_batching(self.specs[name]) if name in self.specs else None
        return None if stated is None else Owned(stated, SPEC)

    def decomposition(self, name: str) -> Owned[DecompositionEntry] | None:
        """Return the decomposition in force, or None."""
        stack = self.decompositions.get(name)
        return stack[-1] if stack else None


Addition = tuple[str, Any, Owned[Any]]  # the stacks' name, the key, the new top entry


class Handle:
    """What a registration returns: ``remove()`` undoes it; also a context manager."""

    def __init__(self, registry: Registry, additions: list[Addition]) -> None:
        self._registry = registry
        self._additions = additions

    def remove(self) -> None:
        """Remove the entries; overridden ones apply again. Calling it again does nothing."""
        if self._additions:
            self._registry.discard(self._additions)
            self._additions = []  # not before: an interrupt may prevent the removal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


class Registry:
    """Everything registered with one engine."""

    def __init__(self, catalogue: Iterable[KernelSpec] = ()) -> None:
        self._lock = Lock()
        self._catalogue = {spec.name: spec for spec in catalogue}
        self._listeners: list[Callable[[], None]] = []
        self.state: State = State(specs=dict(self._catalogue))

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after every change, before the change returns."""
        self._listeners.append(listener)

    def spec(self, spec_or_name: KernelSpec | str) -> KernelSpec:
        """Return the spec itself, or look it up by name.

        Raises:
            ArgumentError: no spec has that name, or another spec has it.

        """
        if isinstance(spec_or_name, KernelSpec):
            self.check(spec_or_name)
            return spec_or_name
        if not isinstance(spec_or_name, str):
            raise ArgumentError(
                f"kernel must be a KernelSpec or its name, got {quoted(spec_or_name)}"
            )
        registered = self.state.specs.get(spec_or_name)
        if registered is None:
            raise ArgumentError(_unknown_spec(spec_or_name, self.state.specs))
        return registered

    def check(self, spec: KernelSpec) -> None:
        """Refuse a spec whose name belongs to another one.

        Raises:
            ArgumentError: another spec has that name.

        """
        if self.state.specs.get(spec.name, spec) is not spec:
            raise ArgumentError(
                f"another kernel spec has the name {spec.name!r}; import that one, or rename yours"
            )

    def add(
        self,
        owner: Owner,
        *,
        kernels: Iterable[tuple[str, KernelEntry]] = (),
        rules: Iterable[GradientEntry | TangentEntry | BatchingEntry] = (),
        decompositions: Iterable[DecompositionEntry] = (),
        override: bool = False,
        into: list[Handle] | None = None,
    ) -> Handle:
        """Register all entries or none; ``kernels`` are (backend name, entry) pairs.

        Entries of the running program take precedence over those a plugin registers later. The
        handle is appended to ``into`` first, so that no interrupt can separate it from them.

        Raises:
            RegistrationError: one is registered already and ``override`` is False, or another
                spec has its spec's name.

        """
        additions: list[Addition] = [
            ("kernels", (entry.spec.name, backend), Owned(entry, owner))
            for backend, entry in kernels
        ]
        additions += [(rule.kept_in, rule.key, Owned(rule, owner)) for rule in rules]
        additions += [
            ("decompositions", entry.spec.name, Owned(entry, owner)) for entry in decompositions
        ]
        handle = Handle(self, additions)
        with self._lock:
            if into is not None:
                into.append(handle)
            stacks = self._copies()
            for which, key, owned in additions:
                old = stacks[which].get(key, ())
                if old and old[0].owner is PROGRAM and owner is not PROGRAM:
                    stacks[which][key] = (owned, *old)
                elif old and not (override or owned.entry.override):
                    raise RegistrationError(_duplicate(key, old[-1].owner, owned))
                else:
                    stacks[which][key] = (*old, owned)
            self._commit(stacks)
        return handle

    def discard(self, additions: Iterable[Addition]) -> None:
        """Remove single entries from any place in their stacks."""
        with self._lock:
            stacks = self._copies()
            for which, key, owned in additions:
                _drop(stacks[which], key, owned)
            self._commit(stacks)

    def remove_kernel(self, name: str, backend: str) -> None:
        """Remove the kernel in force.

        Raises:
            RegistrationError: no kernel is registered.

        """
        with self._lock:
            owned = self.state.kernel(name, backend)
            if owned is None:
                raise RegistrationError(
                    f"kernel {name!r} is not registered for backend {backend!r}"
                )
            self.discard([("kernels", (name, backend), owned)])

    def remove_gradient(self, name: str, wrt: str | None = None) -> None:
        """Remove the gradient rules in force: of one input, or of all.

        Raises:
            RegistrationError: no rule is registered.

        """
        with self._lock:
            additions: list[Addition] = [
                ("gradients", key, stack[-1])
                for key, stack in self.state.gradients.items()
                if key[0] == name and wrt in (None, key[1])
            ]
            if not additions:
                of = "" if wrt is None else f" with respect to {wrt!r}"
                raise RegistrationError(f"no gradient of {name!r}{of} is registered")
            self.discard(additions)

    def _copies(self) -> dict[str, Stacks[Any]]:
        # A state is never changed: plans are compared with it by identity, and threads read it
        # without the lock.
        state = self.state
        return {
            "kernels": dict(state.kernels),
            "gradients": dict(state.gradients),
            "tangents": dict(state.tangents),
            "batchings": dict(state.batchings),
            "decompositions": dict(state.decompositions),
        }

    def _commit(self, stacks: dict[str, Stacks[Any]]) -> None:
        specs = dict(self._catalogue)
        for family in stacks.values():
            for stack in family.values():
                for owned in stack:
                    spec: KernelSpec = owned.entry.spec
                    known = specs.setdefault(spec.name, spec)
                    if known is not spec:
                        raise RegistrationError(
                            f"{owned.owner} defines a spec {spec.name!r}, but another spec has "
                            "that name; import that one, or rename yours"
                        )
        before = self.state
        self.state = State(before.version + 1, specs, **stacks)
        try:
            self._notify()
        except BaseException:
            # The set-up of a kernel failed. Restore the entries in a new state, because plans
            # may have been made from the failed one.
            self.state = replace(before, version=self.state.version + 1)
            self._notify()
            raise

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()


def _drop(stacks: Stacks[Any], key: Hashable, owned: Owned[Any]) -> None:
    rest = tuple(other for other in stacks.get(key, ()) if other is not owned)
    if rest:
        stacks[key] = rest
    else:
        stacks.pop(key, None)


def _duplicate(key: Any, old: Owner, new: Owned[Any]) -> str:
    if isinstance(new.entry, KernelEntry):
        what = f"kernel {key[0]!r} for backend {key[1]!r}"
    elif isinstance(new.entry, DecompositionEntry):
        what = f"the decomposition of {key!r}"
    else:
        what = f"the {new.entry.title}"
    return (
        f"{what} is already registered by {old}; {new.owner} must set override=True to replace it"
    )


def _unknown_spec(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # imported only for errors

    near = get_close_matches(name, list(known), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no kernel is called {name!r}{hint}"
