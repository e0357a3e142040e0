"""The optional methods of a backend, which are looked up once when a device is opened.

You need none of these to start. They stand in the order of what programs gain by them.

===================  =======================================  =================================
field                methods of the backend                   without them
===================  =======================================  =================================
``groups``           ``compile_group``, ``functions``,        kernels run one by one
                     ``least_group``
``programs``         ``compiler``, ``take_calls``,            calls run as groups, or one by one
                     ``compile_program``, ``load_program``
``exclusive``        ``exclusive``                            each assignment copies the tensor
``reuses``           ``owns_memory``                          groups take new memory
``shares_memory``    ``share_from_host``, ``share_to_host``   other libraries get copies
``exchanges``        ``dlpack_device``, ``to_dlpack``,         other libraries get copies in host
                     ``from_dlpack``                          memory
``loops``            ``compile_loop``                         loops run step by step
``binds``            ``bind_constants``                       each run prepares constants again
``measure``          ``measure``                              profiles use the host's clock
``trim``             ``trim``                                 ``trim_memory`` does nothing
``counts_buffers``   ``live_buffers``, ``counts``,            debug mode does not check for
                     ``stop_counting``                        leaks
``explain_loss``     ``explain_loss``                         a lost device must be removed before
                                                              another opens
``inject_fault``     ``inject_fault``                         the suite does not see its errors
``survives_fork``    the property ``survives_fork``           a forked child cannot use it
``flushes``          the property ``flushes_subnormals``      subnormal numbers are kept
``largest_buffer``   the property ``largest_buffer``          the memory alone limits tensors
``widens``           the property ``widens``                  kernels without ``dtypes=`` compute
                                                             with bfloat16 in float32
``kernel_guide``     the property ``kernel_guide``            errors name its documentation
===================  =======================================  =================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.backend import (
    BindsConstants,
    CompilesGroups,
    CountsBuffers,
    ExchangesDeviceMemory,
    Measures,
    OverwritesBuffers,
    ReusesMemory,
    SharesHostMemory,
    Trims,
)
from tensorplug.contract.expressions import FUNCTIONS
from tensorplug.contract.failures import InjectsFaults, ReportsLoss
from tensorplug.contract.loop_bodies import CompilesLoops
from tensorplug.contract.programs import CompilesPrograms
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.backend import Backend, Buffer, ExclusiveBuffer
    from tensorplug.contract.dtypes import DType
    from tensorplug.errors import DeviceError


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The optional methods of one backend; None or False if it lacks them.

    You need none of these to start; they stand in the order of what programs gain by them.
    """

    groups: CompilesGroups | None = None
    programs: CompilesPrograms | None = None
    exclusive: Callable[[Buffer], ExclusiveBuffer | None] | None = None
    reuses: ReusesMemory | None = None
    shares_memory: SharesHostMemory | None = None
    exchanges: ExchangesDeviceMemory | None = None
    loops: CompilesLoops | None = None
    binds: BindsConstants | None = None
    measure: Callable[[], Callable[[], int]] | None = None
    trim: Callable[[], int] | None = None
    counts_buffers: CountsBuffers | None = None
    explain_loss: Callable[[], str] | None = None
    inject_fault: Callable[[type[DeviceError]], str] | None = None
    survives_fork: bool = False
    flushes: frozenset[DType] = frozenset()
    largest_buffer: int | None = None
    widens: frozenset[DType] = dt.WIDENED
    kernel_guide: str = ""


def of(backend: Backend) -> Capabilities:
    """Return the capabilities of ``backend``.

    Raises:
        RegistrationError: it has some methods of a capability, but not all of them; its guide is
            no text; or its groups have functions that expressions lack.

    """
    guide = getattr(backend, "kernel_guide", "")
    if not isinstance(guide, str):
        raise RegistrationError(
            f"backend {backend.name!r}: kernel_guide must be a str, got {type(guide).__name__}"
        )
    groups = _find(backend, CompilesGroups)
    unknown = sorted({*groups.functions} - FUNCTIONS.keys()) if groups else []
    if unknown:
        raise RegistrationError(
            f"backend {backend.name!r}: functions may have {', '.join(sorted(FUNCTIONS))}, got "
            f"{', '.join(unknown)}"
        )
    measures = _find(backend, Measures)
    trims = _find(backend, Trims)
    overwrites = _find(backend, OverwritesBuffers)
    loses = _find(backend, ReportsLoss)
    injects = _find(backend, InjectsFaults)
    return Capabilities(
        groups=groups,
        programs=_find(backend, CompilesPrograms),
        exclusive=overwrites and overwrites.exclusive,
        reuses=_find(backend, ReusesMemory),
        shares_memory=_find(backend, SharesHostMemory),
        exchanges=_find(backend, ExchangesDeviceMemory),
        loops=_find(backend, CompilesLoops),
        binds=_find(backend, BindsConstants),
        measure=measures and measures.measure,
        trim=trims and trims.trim,
        counts_buffers=_find(backend, CountsBuffers),
        explain_loss=loses and loses.explain_loss,
        inject_fault=injects and injects.inject_fault,
        survives_fork=bool(getattr(backend, "survives_fork", False)),
        flushes=frozenset(getattr(backend, "flushes_subnormals", ())),
        largest_buffer=getattr(backend, "largest_buffer", None),
        widens=frozenset(getattr(backend, "widens", dt.WIDENED)),
        kernel_guide=guide,
    )


def _find(backend: Any, protocol: type) -> Any:
    """Return ``backend`` if it has all methods of a protocol, None if it has none of them."""
    names = [name for name in vars(protocol) if not name.startswith("_")]
    lacking = [name for name in names if not _has(backend, name, vars(protocol)[name])]
    if len(lacking) == len(names):
        return None
    if lacking:
        raise RegistrationError(
            f"backend {backend.name!r} has some methods of tensorplug.plugin.{protocol.__name__}, "
            f"but lacks {', '.join(lacking)}"
        )
    return backend


def _has(backend: Any, name: str, declared: Any) -> bool:
    """Return whether ``backend`` has a property, or a method, of a protocol."""
    if isinstance(declared, property):
        return hasattr(backend, name)
    return callable(getattr(backend, name, None))
