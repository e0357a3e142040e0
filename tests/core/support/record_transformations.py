"""Record what JAX computes for ``transformation_cases``: the expected values of a test.

Run as ``python -m tests.core.support.record_transformations`` where JAX is installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from tests.core.support import transformation_cases as cases

PATH: Final = Path(__file__).with_name("transformations_of_jax.json")


def _library() -> cases.Library:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", val=True)
    return cases.Library(
        ops=jnp,
        own=jax,
        loops=SimpleNamespace(
            **{name: getattr(jax.lax, name) for name in ("scan", "while_loop", "fori_loop")},
            **{name: getattr(jax.lax, name) for name in ("cond", "switch", "map")},
            associative_scan=jax.lax.associative_scan,
        ),
        asarray=jnp.asarray,
        compile=jax.jit,
        checkpoint=jax.checkpoint,
        softmax=jax.nn.softmax,
        inv=jnp.linalg.inv,
        outer=jnp.outer,
        concat=jnp.concatenate,
    )


def _as_json(value: Any) -> Any:
    array = np.asarray(value)
    return {"dtype": array.dtype.name, "shape": array.shape, "data": array.ravel().tolist()}


def main() -> None:
    """Write the file."""
    import jax

    lib = _library()
    transformations = cases.transformations(lib)
    composed = {
        name: {what: _as_json(compute(f)) for what, compute in transformations.items()}
        for name, f in cases.functions(lib).items()
    }
    composed["calls"] = {name: _as_json(call()) for name, call in cases.calls(lib).items()}
    tables = [f"{json.dumps(name)}: {_lines(found)}" for name, found in composed.items()]
    made_by = json.dumps(f"jax {jax.__version__}")
    PATH.write_text("{\n" + ",\n".join([f'"made_by": {made_by}', *tables]) + "\n}\n")


def _lines(table: dict[str, Any]) -> str:
    """Return a table as JSON with one entry a line, for readable differences."""
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in table.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


if __name__ == "__main__":
    main()
