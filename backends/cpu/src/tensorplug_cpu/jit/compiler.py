"""From LLVM's intermediate representation to functions that ctypes calls."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["compile_function", "is_available"]

_lock: Final = threading.RLock()
_compiled: Final[dict[str, tuple[Any, int]]] = {}


@cache
def is_available() -> bool:
    """Return whether llvmlite can be imported."""
    try:
        import llvmlite.binding  # noqa: F401  # an extra
    except ImportError:
        return False
    return True


def compile_function(text: str, name: str, arguments: Sequence[Any]) -> Callable[..., None]:
    """Return the function ``name`` of a module, given as text.

    ``arguments``: their ctypes, such as ``ctypes.c_void_p``. The function returns nothing, and
    runs without the interpreter's lock.
    """
    with _lock:
        found = _compiled.get(text)
        if found is None:
            found = _compiled[text] = _compile(text, name)
    engine, address = found
    function = ctypes.CFUNCTYPE(None, *arguments)(address)
    function.engine = engine  # type: ignore[attr-defined]  # keeps the code alive
    return function


def _compile(text: str, name: str) -> tuple[Any, int]:
    import llvmlite.binding as llvm  # an extra

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine, engine.get_function_address(name)
