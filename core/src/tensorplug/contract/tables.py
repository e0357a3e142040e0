"""Tables of kernels and decompositions: inert, filled by decorators.

A plugin fills tables at import and hands them over from its hooks; nothing is registered
before the engine takes them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tensorplug.contract import signatures
from tensorplug.contract.entries import (
    KERNEL_EXTRAS,
    DecompositionEntry,
    Entry,
    KernelEntry,
    decomposition_entry,
    kernel_entry,
)
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.entries import OnDevice
    from tensorplug.contract.spec import KernelSpec


F = TypeVar("F", bound="Callable[..., Any]")
E = TypeVar("E", bound=Entry)


class Table(Generic[E]):
    """Entries by key, each once; iterate over it for the entries in order."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, E] = {}

    def _add(self, entry: E) -> None:
        old = self._entries.setdefault((entry.kept_in, entry.key), entry)
        if old is not entry:
            first, second = _location(old), _location(entry)
            raise RegistrationError(f"{entry.title} is in this table twice: {first} and {second}")

    def _entering(self, make: Callable[[Any], E]) -> Callable[[F], F]:
        """Return a decorator that adds the entry which ``make`` returns for a function."""

        def decorate(function: F) -> F:
            self._add(make(function))
            return function

        return decorate

    def __iter__(self) -> Iterator[E]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


def _location(entry: Entry) -> str:
    function = getattr(entry, "function", None) or getattr(entry, "rule", None)
    if isinstance(function, partial):  # of ``launch``
        function = function.args[0]
    return signatures.location(function) if function else "a statement"


class KernelTable(Table[KernelEntry]):
    """Kernels of one backend, by kernel name.

    ``override=True`` states that an entry replaces one that another plugin registered; without
    it, a second registration is an error that names both owners. The same holds for the other
    tables.

    Args:
        launch: how the functions that ``register`` decorates run, if not by themselves. They are
            then programs of the device, and a call is ``launch(program, *inputs, **asked)``,
            with the buffers of the call. ``launch`` may name ``backend`` and ``out`` for itself,
            keyword-only; ``**asked`` is what the program asks for besides.

    Raises:
        RegistrationError: ``launch`` names something else.

    Example:
        The programs of a device whose driver gets handles::

            def launch(program, *inputs, backend, out, **attributes):
                result = backend.allocate(out)
                backend.driver.run(program, [x.handle for x in inputs], result.handle, attributes)
                return result


            kernels = KernelTable(launch)
            kernels.register(specs.NEG)(np.negative)

    """

    def __init__(self, launch: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self._launch = launch
        self._asks = () if launch is None else signatures.asked_by_launch(launch, KERNEL_EXTRAS)

    def register(
        self,
        spec: KernelSpec,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
        setup: OnDevice | None = None,
        teardown: OnDevice | None = None,
    ) -> Callable[[F], F]:
        """Decorate a function of buffers: inputs by name, then what it asks keyword-only.

        It may ask for any attribute (``attributes``: a dict of all of them), for ``backend``
        (the Backend object) and for ``out`` (the inferred output type, a tuple of them if there
        are several outputs). It returns
        a buffer, or a sequence of them for several outputs, and never writes into an input. One or
        two inputs need no names where a function takes them by position alone, as ufuncs do.

        ``setup(backend)`` is called once for each device that is opened (or is open when the
        kernel is registered), before the kernel can run there; ``teardown(backend)`` once when
        the device is closed or the kernel removed. They use the backend, and run no op.
        """

        def make(function: Callable[..., Any]) -> KernelEntry:
            entry = kernel_entry(
                spec, function, dtypes=dtypes, override=override, setup=setup, teardown=teardown
            )
            if self._launch is None:
                return entry
            asks = tuple(dict.fromkeys((*entry.asks, *self._asks)))
            return replace(entry, function=partial(self._launch, function), asks=asks)

        return self._entering(make)

    def prepare(
        self,
        spec: KernelSpec,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
        setup: OnDevice | None = None,
        teardown: OnDevice | None = None,
        fuses: bool = False,
    ) -> Callable[[F], F]:
        """Decorate a function of input *types* that returns the callable to run on buffers.

        It is called once per plan, so work that depends only on types and attributes is done
        once: building a program, choosing an algorithm. It raises ``KernelRefusedError`` to
        decline, and the engine then decomposes the kernel or falls back. ``setup`` and
        ``teardown`` are as for ``register``. ``fuses``: a backend that compiles groups may
        compute large calls in one pass of the decomposition instead of by this kernel.
        """

        def decorate(function: F) -> F:
            entry = kernel_entry(
                spec,
                function,
                prepares=True,
                dtypes=dtypes,
                override=override,
                setup=setup,
                teardown=teardown,
                fuses=fuses,
            )
            self._add(entry)
            return function

        return decorate


class DecompositionTable(Table[DecompositionEntry]):
    """Kernel specs written with other ops, by kernel name.

    The core traces a function to find out whether its calls run as one group (softmax does). It
    does so again for each size, unless the table says what holds for all sizes.

    Args:
        reads: the functions make the same calls, with equal numbers in them, at all sizes above 1,
            as long as equal sizes remain equal. Sizes along the axes in the attributes of these
            names are an exception, such as ``"axis"`` of a mean. ``()``: there is none.
        alone: the functions are never one group: they make other calls than elementwise ones and
            reductions.

    """

    def __init__(self, *, reads: Sequence[str] | None = None, alone: bool = False) -> None:
        super().__init__()
        self._reads = reads
        self._alone = alone

    def of(
        self,
        spec: KernelSpec,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
        reads: Sequence[str] | None = None,
        alone: bool | None = None,
    ) -> Callable[[F], F]:
        """Decorate a function of tensors: inputs by name, then what it asks keyword-only.

        It may ask for any attribute (``attributes``: a dict of all of them) and for ``out``,
        the inferred output type. It calls ops,
        which run on the active backend, and reads no tensor's data. One that is an expression
        may be a lambda: ``decompositions.of(SQUARE)(lambda x: x * x)``. ``reads``, ``alone``: as
        those of the table, for this function.
        """
        return self._entering(
            lambda function: decomposition_entry(
                spec,
                function,
                dtypes=dtypes,
                override=override,
                reads=self._reads if reads is None else reads,
                alone=self._alone if alone is None else alone,
            )
        )

    def on_host(
        self,
        spec: KernelSpec,
        *,
        dtypes: Iterable[DType] | None = None,
        override: bool = False,
    ) -> Callable[[F], F]:
        """Decorate a function of NumPy arrays, for what no device's ops can express.

        That is what depends on data in its shape or its course, or works on strings. Its
        parameters are as for ``of``, with arrays for tensors; it returns an array, or a
        sequence of them for several outputs, and never writes into an input. The engine
        copies the inputs to the host and the results back; strings stay there where the
        device has none.
        """
        return self._entering(
            lambda function: decomposition_entry(
                spec, function, dtypes=dtypes, override=override, on_host=True
            )
        )
