"""Fusion: finds the groups of a program that its backend runs as one.

A call joins the groups of the calls whose results it uses, unless a call outside has used such a
result already: then the group could not run at the place of its last member. If the backend
declines a group, it is asked for the parts. A group of few elements saves no memory traffic, only
the cost of calls, so it needs several of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.compile.fusion.arguments import find_arguments
from tensorplug.compile.fusion.forming import form_group
from tensorplug.compile.fusion.loops import Leaves, Loops
from tensorplug.compile.fusion.reuse import choose_overwritten
from tensorplug.compile.fusion.steps import (
    Composite,
    Reshape,
    Steps,
    count_calls,
    is_general,
    is_plain_reduction,
    reduces,
)
from tensorplug.compile.fusion.structures import (
    KEPT,
    FusedCall,
    Keyed,
    Structure,
    ask,
    find_key,
)
from tensorplug.contract.dtypes import STORAGE, string
from tensorplug.contract.elementary import spell_out
from tensorplug.contract.expressions import FUNCTIONS
from tensorplug.engine.plans import BY_OPS

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    from tensorplug.compile.fusion.loops import Source
    from tensorplug.compile.fusion.steps import Step
    from tensorplug.compile.fusion.structures import Answer
    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.values import Constant, Value
    from tensorplug.contract.backend import CompilesGroups
    from tensorplug.contract.expressions import Expression
    from tensorplug.contract.groups import Group
    from tensorplug.contract.shapes import Shape
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Plan


_NEVER_FUSED: Final = STORAGE | {string}
_NAMED: Final = 8  # members in the name of a group
_MANY: Final = 4  # kernel calls that cost more than one call of a compiled group of few elements


class Fusion(NamedTuple):
    """The groups of a program; ``alone``: the other calls by position, each with the reason.

    ``declined``: why the backend declined a group, by its name. Its parts may be groups.
    ``known``: whether they are those of another program, which differs in sizes alone.
    ``general``: the key and the structure by which other sizes have the same groups, if any.
    """

    groups: Sequence[FusedCall]
    alone: Mapping[int, str]
    known: bool = False
    general: tuple[Keyed, Structure] | None = None
    declined: Mapping[str, str] = {}  # nobody adds to it


@dataclass(eq=False)
class _Members:
    """Calls, by their positions in the program, that run in common loops.

    ``open``: no call outside has used a result yet.
    """

    loops: Loops
    places: list[int] = field(default_factory=list)
    open: bool = True


def fuse(
    engine: Engine,
    groups: CompilesGroups,
    calls: Sequence[Call],
    wanted: Sequence[Value | Constant],
    *,
    small: bool = False,
    single: bool = False,
    owned: Collection[Value] = (),
    apart: Collection[int] = (),
) -> Fusion:
    """Return the groups of a program's calls that the backend accepts.

    ``wanted``: the values that the program returns. ``small``: whether groups of fewer elements
    than the backend's ``least_group`` are formed too, of several calls. ``single``: whether each
    call that computes is in a group, alone if need be. ``owned``: values whose memory a group may
    overwrite after their last use. ``apart``: the places of calls that are in no group.
    """
    returned, ours = frozenset(wanted), frozenset(owned)
    device, state = calls[0].plan.device if calls else None, engine.registry.state
    # Not with ``single``, where what asks is no compiler, but remembers the groups.
    arguments, least = find_arguments(calls), groups.least_group
    keyed = (
        None
        if single or apart
        else find_key(calls, returned, ours, arguments=arguments, least=least, small=small)
    )
    if keyed is not None and device is not None:
        known: Structure | None = device.structures.get(keyed.key)
        bound = None if known is None else known.bind(groups, keyed)
        if known is not None and bound is not None:
            return Fusion(bound, known.alone, known=bool(bound), general=(keyed, known))
    steps = Steps(engine)
    steps_of_calls = [
        None if at in apart else _find_step(steps, call) for at, call in enumerate(calls)
    ]
    leaves = Leaves(arguments)
    program = _Program(groups, calls, steps_of_calls, leaves, returned, small, single, ours)
    fused = program.fuse(range(len(calls)))
    inside = {at for each in fused for at in each.members}
    alone = [at for at in range(len(calls)) if at not in inside]
    why = {at: program.why_alone(at) for at in alone}
    fusion = Fusion(fused, why, declined=program.declined)
    if keyed is not None and device is not None and program.is_general():
        with device.lock:
            if engine.registry.state is state and not device.closed:
                made = keyed.structure(fused, fusion.alone, leaves.counts)
                device.remember(device.structures, keyed.key, made, KEPT)
                return fusion._replace(general=(keyed, made))
    return fusion


def _find_step(steps: Steps, call: Call) -> Step | None:
    plan, device = call.plan, call.plan.device
    if plan.how == "native" and not plan.yields():
        return None
    step = steps.find(plan)
    if plan.how != "native" and isinstance(step, Composite):
        names = {inner.plan.spec.name for inner, _ in step.calls}
        if any(_is_replaced(plan, name) for name in names):
            return None
    # Strings and packed numbers have no arithmetic, and loops read the memory of one device.
    for operand in (*call.operands(), *call.outputs):
        placement = operand.placement
        if placement.device is not device or placement.type.dtype in _NEVER_FUSED:
            return None
    return step


def _is_replaced(plan: Plan, name: str) -> bool:
    """Return whether a kernel of the device's backend is somebody else's."""
    owned = plan.state.kernel(name, plan.device.backend.name)
    return owned is not None and owned.owner != plan.device.owner and not owned.entry.fuses


@dataclass(eq=False)
class _Program:
    """The calls of a program, with their steps, and the backend's compiler."""

    backend: CompilesGroups
    calls: Sequence[Call]
    steps: Sequence[Step | None]
    leaves: Leaves
    wanted: frozenset[Value | Constant]
    small: bool
    single: bool
    owned: frozenset[Value]

    def __post_init__(self) -> None:
        self._expressions: dict[Hashable, Expression] = {}  # of all groups
        self._asked: dict[Group, Answer] = {}
        self.declined: dict[str, str] = {}
        self._declined_at: dict[int, str] = {}  # the reason for the last group with this call
        self.users: dict[Any, set[int]] = {}
        for at, call in enumerate(self.calls):
            for operand in call.operands():
                self.users.setdefault(operand, set()).add(at)

    def fuse(self, places: Sequence[int]) -> list[FusedCall]:
        """Return the groups of the calls at ``places`` that the backend accepts."""
        grouping = _Grouping(self)
        for at in places:
            grouping.place(at)
        return [fused for members in grouping.groups() for fused in self._compile(members)]

    def _compile(self, members: _Members) -> Iterator[FusedCall]:
        places = members.places
        if not self._is_worthwhile(members):
            return
        inside = set(places)
        # A value that members alone use never reaches memory, which is what a group saves.
        outputs = [
            output
            for at in places
            for output in self.calls[at].outputs
            if output in self.wanted or not self.users.get(output, inside) <= inside
        ]
        names = [self.calls[at].plan.spec.name for at in places]
        more = ["..."] if len(names) > _NAMED else []
        name = "+".join(names[:_NAMED] + more)
        group, inputs, axes = form_group(members.loops, outputs, name, self._expressions)
        functions = self.backend.functions
        if not FUNCTIONS.keys() <= functions:
            group = group.rewritten(spell_out(group.expressions(), functions))
        dying = [n for n, source in enumerate(inputs) if self._dies(source, places)]
        group = choose_overwritten(group, dying)
        run, reason = ask(self.backend, group, self._asked)
        if run is not None:
            yield FusedCall(group, places, inputs, outputs, run, members.loops.shape, axes)
            return
        self.declined[name] = reason
        self._declined_at.update(dict.fromkeys(places, reason))
        if len(places) > 1:
            # What a backend declines as a whole, it may take in parts.
            cut = self._cut(places)
            yield from self.fuse(places[:cut])
            yield from self.fuse(places[cut:])

    def is_general(self) -> bool:
        """Return whether the groups are the same at all sizes, as far as the key tells."""
        pairs = zip(self.calls, self.steps, strict=True)
        return not self.declined and all(is_general(call.plan, step) for call, step in pairs)

    def why_alone(self, at: int) -> str:
        """Return why a call is in no group."""
        call, step, least = self.calls[at], self.steps[at], self.backend.least_group
        plan = call.plan
        if at in self._declined_at:
            return self._declined_at[at]
        if step is None and plan.how != "native":
            return f"runs {plan.how}"
        if step is None and plan.owner != plan.device.owner:
            return f"a kernel of {plan.owner}"
        if step is None:
            return "neither elementwise nor a reduction"
        if isinstance(step, Reshape):
            return "moves no elements"
        if max(prod(shape) for shape in _shapes(call)) >= least:
            return "one pass as it is"
        few = "few calls on " if self.small else ""
        return f"{few}fewer than {least} elements"

    def _dies(self, source: Source, places: Sequence[int]) -> bool:
        """Return whether nothing needs a value after the group of the calls at ``places``.

        A call outside must come before, and belong to no group, which may run later.
        """
        return (
            source in self.owned
            and source not in self.wanted
            and all(
                at in places or (at < places[-1] and self.steps[at] is None)
                for at in self.users[source]
            )
        )

    def _is_worthwhile(self, members: _Members) -> bool:
        """Return whether a group saves passes over the elements, or calls."""
        computing = [at for at in members.places if self._computes(at, members.loops)]
        if self.single:
            return bool(computing)
        if prod(members.loops.shape) < self.backend.least_group:
            kernels = [
                # A function without a kernel would be spelled out by many.
                _MANY if self.calls[at].plan.how in BY_OPS else count_calls(self.steps[at])
                for at in computing
            ]
            return sum(kernels) >= _MANY
        if len(computing) != 1:
            return bool(computing)
        plan = self.calls[computing[0]].plan
        # One native kernel is one pass already, unless it consists of several steps.
        if plan.how != "native":
            return True
        return isinstance(self.steps[computing[0]], Composite) and not is_plain_reduction(plan)

    def _computes(self, at: int, loops: Loops) -> bool:
        """Return whether a call does more than to move elements."""
        if isinstance(self.steps[at], Reshape):
            return False
        results = [loops.elements[output].expression for output in self.calls[at].outputs]
        return any(
            result.op not in ("parameter", "constant")
            or (result.op == "parameter" and result.value not in self.leaves.sources)
            for result in results
        )

    def _cut(self, places: Sequence[int]) -> int:
        """Return where to cut a group that the backend declined: after its reductions, if any."""
        last = max((n for n, at in enumerate(places) if reduces(self.steps[at])), default=None)
        if last is None:
            return len(places) // 2
        return last + 1 if last + 1 < len(places) else last


class _Grouping:
    """The groups of some calls of a program, as far as these have been placed."""

    def __init__(self, program: _Program) -> None:
        self.program = program
        self._filled: dict[Any, _Members] = {}  # by the values of the members

    def groups(self) -> list[_Members]:
        """Return the groups."""
        return list(dict.fromkeys(self._filled.values()))

    def place(self, at: int) -> None:
        """Put a call into a group, perhaps a new one, or close the groups that it uses."""
        call, step = self.program.calls[at], self.program.steps[at]
        operands = call.operands()
        used = list(dict.fromkeys(self._filled[x] for x in operands if x in self._filled))
        joined = None if step is None else self._join(call, step, [x for x in used if x.open])
        if joined is not None:
            joined.places.append(at)
            joined.places.sort()
            self._filled.update(dict.fromkeys(call.outputs, joined))
        for operand in operands:
            members = self._filled.get(operand)
            if members is not None and members is not joined:
                # It has to run before this call; a later member might need what this call makes.
                members.open = False

    def _join(self, call: Call, step: Step, used: Sequence[_Members]) -> _Members | None:
        """Return the group of which a call has become a member; None if there is none."""
        # The largest loops first: a pass over their elements is what a group saves.
        used = sorted(used, key=lambda members: prod(members.loops.shape), reverse=True)
        merged = self._merge(used)
        if merged is not None and merged.loops.add(call, step):
            for value in merged.loops.elements:
                self._filled[value] = merged
            return merged
        for members in used:
            if members.loops.add(call, step):
                return members
        # A reshape alone computes nothing: a group that began with it would be a copy.
        return None if isinstance(step, Reshape) else self._start(call, step)

    def _start(self, call: Call, step: Step) -> _Members | None:
        """Return a group of one call; None if there is none."""
        least = self.program.backend.least_group
        # In a compiled function a small group saves calls, though it saves no time per element.
        least = min(least, 1) if self.program.small else least
        for shape in _shapes(call):
            if prod(shape) >= least:
                loops = Loops(self.program.leaves, shape)
                if loops.add(call, step):
                    return _Members(loops)
        return None

    @staticmethod
    def _merge(used: Sequence[_Members]) -> _Members | None:
        """Return a new group of all members of several; None if they do not fit together."""
        if len(used) < 2:
            return None
        loops: Loops | None = used[0].loops
        for members in used[1:]:
            loops = loops and loops.merge(members.loops)
        if loops is None:
            return None
        return _Members(loops, sorted(at for members in used for at in members.places))


def _shapes(call: Call) -> list[Shape]:
    """Return the shapes that the loops of a call may have, largest first, its outputs' first."""
    values = [*call.outputs, *call.operands()]
    shapes = dict.fromkeys(value.placement.type.shape for value in values)
    return sorted(shapes, key=prod, reverse=True)
