"""The owners of registered entries: distributions, or the running program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owner:
    """The distribution, or the running program, that an entry came from."""

    distribution: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".rstrip()


PROGRAM = Owner("the running program")
SPEC = Owner("the spec")
