"""Wrong programs, and the checks of level 4 that must catch them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tensorplug_conformance.checks import NotMeasuredError, Target, checks
from tensorplug_conformance.selftest.programs import compiled, memory, repeated, rules, whole
from tensorplug_conformance.selftest.programs.engines import REFERENCE
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """``make`` returns the engine, and ``check`` of level 4 must catch it."""

    make: Callable[[], Engine]
    check: str

    @property
    def name(self) -> str:
        """What is wrong with it, in words."""
        return self.make.__name__.replace("_", " ")


WRONG_PROGRAMS: Final = (
    WrongProgram(compiled.swaps_operands, "compiled = eager: elementwise chain"),
    WrongProgram(compiled.swaps_operands, "compiled = eager: step of training"),
    WrongProgram(compiled.computes_in_half, "compiled = eager: elementwise chain"),
    WrongProgram(compiled.computes_in_half, "compiled = eager: gradients through"),
    *(
        WrongProgram(compiled.keeps_digits, f"each call rounds: {program} of {dtype}")
        for program in ("chain", "long chain", "loops")
        for dtype in ("float16", "bfloat16")
    ),
    WrongProgram(compiled.remembers_results, "compiled = eager: variables"),
    WrongProgram(compiled.remembers_results, "compiled = eager: loop and choice"),
    WrongProgram(compiled.draws_once, "compiled = eager: random numbers"),
    WrongProgram(compiled.owns_results, "compiled = eager: broadcast chain"),
    WrongProgram(compiled.writes_into_arguments, "compiled = eager: elementwise chain"),
    WrongProgram(compiled.loses_the_last_block, "compiled = eager: long chain"),
    WrongProgram(compiled.loses_the_last_block, "compiled = eager: chain into sums"),
    WrongProgram(compiled.loses_the_end_of_many, "compiled = eager: longer chain"),
    WrongProgram(compiled.fails_where_empty, "compiled = eager: empty chain"),
    WrongProgram(compiled.declares_what_it_declines, "functions of groups"),
    WrongProgram(compiled.approximates_a_function, "functions of groups"),
    WrongProgram(compiled.swaps_operands, "loops: scan"),
    WrongProgram(compiled.writes_into_arguments, "loops: scan of large carries"),
    WrongProgram(compiled.remembers_results, "loops: while_loop, cond and switch"),
    WrongProgram(compiled.computes_in_half, "loops: gradient of a scan"),
    WrongProgram(compiled.remembers_results, "loops: fori_loop, map and associative_scan"),
    WrongProgram(compiled.turns_loops_round, "loops: scan"),
    WrongProgram(compiled.turns_loops_round, "loops: gradient of a scan"),
    WrongProgram(compiled.asks_too_late, "loops: while_loop, cond and switch"),
    WrongProgram(compiled.keeps_what_it_made, "flat memory: compiled"),
    WrongProgram(compiled.shares_scratch, "threads that share a program"),
    WrongProgram(whole.computes_something_else, "whole programs: all calls"),
    WrongProgram(whole.takes_maxima_for_minima, "whole programs: with gaps"),
    WrongProgram(whole.loads_what_it_remembers, "whole programs: loaded"),
    WrongProgram(whole.takes_memory_that_was_not_given, "whole programs: donated"),
    WrongProgram(repeated.differs_by_process, "same bits in two processes"),
    WrongProgram(repeated.tunes_itself, "same seed, same bits"),
    WrongProgram(repeated.leaks_now_and_then, "flat memory: training by hand"),
    WrongProgram(repeated.leaks_now_and_then, "flat memory: interrupted"),
    WrongProgram(repeated.knows_one_matrix, "vmap = stack: examples in axis 0"),
    WrongProgram(repeated.knows_one_matrix, "vmap = stack: examples in axis 1"),
    WrongProgram(repeated.knows_one_matrix, "vmap = stack: examples in axis 2"),
    WrongProgram(rules.takes_quotients_for_linear, "jvp = slope along a direction"),
    WrongProgram(rules.takes_quotients_for_linear, "facts of specs hold"),
    WrongProgram(rules.takes_scans_for_elementwise, "facts of specs hold"),
    WrongProgram(repeated.tires, "training float32: logistic regression, by hand"),
    WrongProgram(repeated.tires, "training float32: perceptron, SGD"),
    WrongProgram(repeated.takes_operands_for_different, "gradients of one's own"),
    WrongProgram(repeated.multiplies_in_one_place, "threads that train"),
    WrongProgram(memory.recycles_what_has_views, "scopes"),
    WrongProgram(memory.recycles_what_has_views, "disposal"),
    WrongProgram(repeated.computes_on_the_host, "training stays on the device"),
    WrongProgram(memory.overwrites_what_others_see, "assignment to elements"),
    WrongProgram(memory.writes_later, "assignment to elements"),
    WrongProgram(memory.downloads_to_one_place, "training resumed from a file"),
    WrongProgram(memory.downloads_to_one_place, "tensors saved and copied"),
    WrongProgram(repeated.tunes_itself, "training resumed from a file"),
    WrongProgram(compiled.computes_in_half, "compiled = eager: second gradient"),
    WrongProgram(compiled.computes_in_half, "compiled = eager: gradient"),
    WrongProgram(compiled.concatenates_once, "compiled = eager: moved"),
    WrongProgram(compiled.swaps_operands, "compiled = eager: integers"),
    WrongProgram(memory.writes_later, "compiled = eager: written in place"),
    WrongProgram(memory.writes_later, "flat memory: written in place"),
    WrongProgram(compiled.keeps_what_it_made, "flat memory: refused while compiled"),
    WrongProgram(repeated.leaks_now_and_then, "flat memory: training with variables"),
    WrongProgram(repeated.leaks_now_and_then, "flat memory: training in a scope"),
    WrongProgram(repeated.leaks_now_and_then, "flat memory: interrupted in a scope"),
    WrongProgram(repeated.leaks_now_and_then, "flat memory: refused while differentiating"),
    WrongProgram(repeated.tires, "training float64: logistic regression, by hand"),
    WrongProgram(repeated.tires, "training float64: perceptron, SGD"),
    WrongProgram(repeated.tires, "training float32: perceptron, Adam"),
    WrongProgram(repeated.tires, "training float64: perceptron, Adam"),
    WrongProgram(repeated.tunes_convolutions, "training float32: convolutional network, momentum"),
    WrongProgram(repeated.tunes_convolutions, "training float64: convolutional network, momentum"),
)


def try_program(wrong: WrongProgram) -> tuple[str, bool, str]:
    """Run the check that must catch it; return the trial's name, success and evidence."""
    (check,) = (check for check in checks(4) if check.id == wrong.check)
    target = Target(REFERENCE, f"{wrong.make.__module__}:{wrong.make.__name__}")
    session = Session(engine_factory(target.factory), REFERENCE)
    name = f"program that {wrong.name}"
    try:
        check.run(target, lambda: session)
    except NotMeasuredError as reason:
        return name, False, f"not measured: {reason}"
    except Exception as error:  # noqa: BLE001  # as in a worker: whatever it is, it is a verdict
        return name, True, f"{check.id}: {error}".splitlines()[0]
    return name, False, f"check {check.id!r} passed"
