"""What the structure of a kernel says: facts of its spec, from which rules follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.arguments import quoted
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_OF_INPUTS: Final = ("linear", "symmetric", "fold")


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """Facts of a kernel: ``vmap`` and forward mode use them in the place of rules.

    Rules of a ``RuleTable`` come first. The conformance suite compares the facts with what the
    kernel computes.

    Args:
        linear: inputs in which the kernel is linear: each alone, as a product is in its factors;
            taken together in an inner tuple, as ``(("t", "e"),)`` of a choice. The tangent is the
            kernel of the tangents.
        linear_with: attributes of that linear kernel, where those of the call make it affine:
            ``{"constant_value": 0}`` of a padding.
        elementwise: each element of the one output depends on the elements in its place of the
            inputs, whose shapes broadcast to the output's. By default, what has an expression. Its
            gradient rule, called on tangents, gives the tangent; if it takes complex numbers and
            is not holomorphic, it needs a tangent rule.
        symmetric: inputs whose Jacobian is a symmetric matrix, as that of softmax is.
        fold: inputs whose axis 0 is a batch, as is that of the outputs.
        leading: the kernel does the same along any further axis in front of its inputs; these are
            the attributes that number axes, ``()`` for none.

    """

    linear: tuple[str | tuple[str, ...], ...] = ()
    linear_with: Mapping[str, Any] = field(default_factory=dict)
    elementwise: bool | None = None
    symmetric: tuple[str, ...] = ()
    fold: tuple[str, ...] = ()
    leading: tuple[str, ...] | None = None

    @property
    def linear_groups(self) -> tuple[tuple[str, ...], ...]:
        """The inputs of ``linear``, as tuples of those that are taken together."""
        return tuple((item,) if isinstance(item, str) else item for item in self.linear)

    def facts(self) -> dict[str, str]:
        """Return the facts as text, by name; without those that say nothing."""
        linear = ", ".join(" with ".join(group) for group in self.linear_groups)
        constants = "".join(f"; {name}={value!r}" for name, value in self.linear_with.items())
        texts = {
            "linear": linear + constants,
            "elementwise": "yes" if self.elementwise else "",
            "symmetric": ", ".join(self.symmetric),
            "fold": ", ".join(self.fold),
            "leading": "" if self.leading is None else ", ".join(self.leading) or "yes",
        }
        return {name: text for name, text in texts.items() if text}

    def _check_facts(
        self, role: str, inputs: Collection[str], attributes: Collection[str], outputs: int
    ) -> None:
        """Check the facts against the rest of the spec.

        Raises:
            RegistrationError: a fact cannot hold, or names what the kernel does not have.

        """
        for what, names in self._named():
            if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
                raise RegistrationError(
                    f"{role}: {what} must be a tuple of names, got {quoted(getattr(self, what))}"
                )
            kind, known = ("input", inputs) if what in _OF_INPUTS else ("attribute", attributes)
            wrong = [name for name in names if name not in known]
            if wrong:
                raise RegistrationError(f"{role}: {what} names {wrong[0]!r}, no {kind} of it")
            if len(set(names)) < len(names):
                raise RegistrationError(f"{role}: {what} names an {kind} twice")
        if self.linear_with and not self.linear:
            raise RegistrationError(f"{role}: linear_with is for kernels that are linear")
        if self.fold and self.leading is not None:
            raise RegistrationError(f"{role}: it has fold or leading, not both")
        for what in ("elementwise", "symmetric"):
            if getattr(self, what) and outputs != 1:
                raise RegistrationError(f"{role}: {what} is for kernels of one output")

    def _named(self) -> Iterator[tuple[str, Any]]:
        """Yield the facts that name something, with these names."""
        linear: Any = self.linear
        if isinstance(linear, tuple) and all(isinstance(item, str | tuple) for item in linear):
            linear = tuple(name for group in self.linear_groups for name in group)
        yield "linear", linear
        yield "linear_with", tuple(self.linear_with)
        yield "symmetric", self.symmetric
        yield "fold", self.fold
        yield "leading", () if self.leading is None else self.leading
