"""The kernel specs of the core by the names of their constants: ``specs.CONV2D``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tensorplug.contract.spec import KernelSpec


class Specs:
    """Kernel specs as attributes, which are found at first use.

    Args:
        find: returns the specs by the names of their constants.

    """

    def __init__(self, find: Callable[[], Mapping[str, KernelSpec]]) -> None:
        self._find = find
        self._found: Mapping[str, KernelSpec] = {}

    def _all(self) -> Mapping[str, KernelSpec]:
        if not self._found:
            self._found = self._find()
            vars(self).update(self._found)  # later reads do not come here
        return self._found

    def __getattr__(self, name: str) -> KernelSpec:
        spec = None if name.startswith("_") else self._all().get(name)
        if spec is None:
            from difflib import get_close_matches  # only where a name is wrong

            near = get_close_matches(name, self._all(), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise AttributeError(f"no kernel spec is called {name!r}{hint}", name=name, obj=self)
        return spec

    def __iter__(self) -> Iterator[KernelSpec]:
        return iter(self._all().values())

    def __dir__(self) -> list[str]:
        return sorted(self._all())
