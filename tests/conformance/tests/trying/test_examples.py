"""Random examples: every kernel has some; they find faults that cases miss, and are repeatable."""

from __future__ import annotations

import itertools
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.cli import main
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.reporting.reproduction import (
    UnknownCaseError,
    reproduce,
    write_scripts,
)
from tensorplug_conformance.selftest.sabotage import Call, Saboteur, install
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.examples import add_examples, search, strategy
from tensorplug_conformance.trying.rows import run_case, run_row
from tensorplug_conformance.trying.variations import Variation, Variations, example

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tensorplug_conformance.case import Array, Case

KNOWN = entries()


def test_every_kernel_has_cases_that_can_be_varied() -> None:
    for entry in KNOWN.values():
        assert Variations(entry, entry.dtypes[0]).cases, entry.spec.name


# What varies ----------------------------------------------------------------------------

SAMPLE = [("Add", "float32"), ("Conv2D", "float16"), ("Concat", "int32"), ("Sum", "float64")]


@pytest.mark.parametrize(("kernel", "dtype"), SAMPLE)
def test_an_id_says_all_about_an_example(kernel: str, dtype: str) -> None:
    varied = Variations(KNOWN[kernel], dt.of(dtype))

    @settings(max_examples=30, database=None, derandomize=True, deadline=None)
    @given(strategy(varied))
    def check(variation: Variation) -> None:
        case = varied.made(variation)
        again = Variations(KNOWN[kernel], dt.of(dtype)).made(Variation.of(case.id))
        assert again.id == case.id
        assert (again.attributes, again.layout) == (case.attributes, case.layout)
        assert all(map(same_bits, arrays(again), arrays(case)))

    check()


def arrays(case: Case) -> list[Array]:
    listed = [operand if isinstance(operand, list) else [operand] for operand in case.inputs]
    return [array for array in itertools.chain(*listed) if array is not None]


def test_sizes_that_are_equal_stay_equal() -> None:
    varied = Variations(KNOWN["Add"], dt.float32)
    case = varied.made(Variation("outer", sizes=(8, 4)))
    assert [array.shape for array in arrays(case)] == [(8, 1), (1, 4)]
    case = varied.made(Variation("row", sizes=(8, 4)))
    assert [array.shape for array in arrays(case)] == [(8,), (4, 8)]


def test_operands_that_are_multiplied_stay_small_together() -> None:
    varied = Variations(KNOWN["Einsum"], dt.float32)
    for name in varied.cases:
        plain = arrays(varied.made(Variation(name)))
        for size in (16, 127):
            operands = arrays(varied.made(Variation(name, sizes=(size,) * varied.sizes(name))))
            most = max(2**20, math.prod(array.size for array in plain))
            assert math.prod(array.size for array in operands) <= most


def test_what_the_spec_refuses_is_left_out() -> None:
    """An axis that only another case has; sizes that contradict a shape."""
    varied = Variations(KNOWN["Sum"], dt.float32)
    case = varied.made(Variation("rank 1", attributes=(("axis", "middle axis"),)))
    assert case.attributes == {}
    assert Variation.of(case.id).attributes == ()
    varied = Variations(KNOWN["Conv2DBackpropInput"], dt.float32)
    plain = varied.made(Variation("valid"))
    other = varied.made(Variation("valid", sizes=(9,) * varied.sizes("valid")))
    assert [array.shape for array in arrays(other)] == [array.shape for array in arrays(plain)]


def test_special_values_are_those_of_cases_with_the_same_attributes() -> None:
    varied = Variations(KNOWN["Sqrt"], dt.float32)
    special = {
        bits
        for which in range(20)
        for bits in arrays(varied.made(Variation("odd", values=((0, 0, which),))))[0][:1].tolist()
    }
    assert any(map(np.isnan, special))
    assert np.inf in special
    padded = Variations(KNOWN["Conv2D"], dt.float32)
    case = padded.made(Variation("same", values=((1, 0, 0),)))
    assert np.isfinite(arrays(case)[1]).all()


def test_inputs_that_must_keep_to_their_cases_get_no_special_values() -> None:
    for entry in KNOWN.values():
        if entry.ordinary and dt.float32 in entry.dtypes:
            varied = Variations(entry, dt.float32)
            at = entry.spec.input_names.index(entry.ordinary[0])
            for name in varied.cases:
                plain = varied.made(Variation(name))
                special = varied.made(Variation(name, values=((at, 0, 0),)))
                assert all(map(same_bits, arrays(plain), arrays(special)))


# What is found ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "dtype", "mode"),
    [
        *((kernel, dtype, "native") for kernel, dtype in SAMPLE),
        ("Conv2D", "float16", "decomposed"),
    ],
)
def test_a_clean_backend_passes(kernel: str, dtype: str, mode: Any) -> None:
    session = Session(engine_factory(None), "cpu", primitives_only=mode == "decomposed")
    count, failure = search(session, KNOWN[kernel], Row(kernel, dtype, mode), 0, 20)
    assert failure is None, failure
    assert count > 10
    session.close()


def _zeroed(condition: Callable[[Call], bool]) -> Callable[[Call], Any]:
    def wrong(call: Call) -> Any:
        outputs = [np.array(output) for output in call.clean()]
        if condition(call):
            for output in outputs:
                output[...] = 0
        return outputs

    return wrong


# Kernels that are wrong where no case looks: by kernel, when, and what the example must show.
RARE: dict[str, tuple[str, Callable[[Call], bool], Callable[[Case], bool]]] = {
    "17, 31 or 33 columns": (
        "Multiply",
        lambda call: call.buffers[0].shape[-1:] in ((17,), (31,), (33,)),
        lambda case: arrays(case)[0].shape[-1:] in ((17,), (31,), (33,)),
    ),
    "8 rows": (
        "Sum",
        lambda call: call.buffers[0].shape[:1] == (8,),
        lambda case: arrays(case)[0].shape[0] == 8,
    ),
    "an infinity in rank 6": (
        "Exp",
        lambda call: call.buffers[0].ndim == 6 and bool(np.isinf(call.buffers[0]).any()),
        lambda case: bool(np.isinf(arrays(case)[0]).any()),
    ),
}


@pytest.mark.parametrize("name", RARE)
def test_what_no_case_shows_is_found_and_made_simple(name: str, cpu: Session) -> None:
    kernel, condition, shown = RARE[name]
    row = Row(kernel, "float32", "native")
    with install(cpu, Saboteur(name, kernel, _zeroed(condition))):
        verdict = run_row(cpu, KNOWN[kernel], row, 0)
        assert verdict.status == "pass native"
        add_examples(verdict, cpu, KNOWN[kernel], 0, 400)
        assert verdict.status == "fail"
        assert verdict.failed == [verdict.failures[0].case]
        again = search(cpu, KNOWN[kernel], row, 0, 400)[1]
    assert again is not None
    assert again.case == verdict.failed[0]
    variation = Variation.of(again.case)
    case = Variations(KNOWN[kernel], dt.float32).made(variation)
    assert shown(case)
    assert (variation.draw, variation.layout) == (0, "dense")


def test_an_example_may_be_presented_and_its_name_tells_how(cpu: Session) -> None:
    kernel, row = KNOWN["Exp"], Row("Exp", "float32", "native")
    several = [Variation("odd", presented="x=backwards, before=last of x")]
    several.append(Variation("rank 0", presented="x=backwards, buffers=packed, before=order of x"))
    first, second = map(Variations(kernel, dt.float32).made, several)
    assert [presentation.id for presentation in first.presentations] == [several[0].presented]
    assert [presentation.id for presentation in second.presentations] == ["before=nothing"]
    again = example(kernel, row, 0, f"{first.id} @ {several[0].presented}")
    assert again is not None
    assert (again.id, again.presentations) == (first.id, first.presentations)
    assert run_case(cpu, kernel, row, again) is None


def test_a_kernel_that_is_wrong_now_and_then_fails_too(cpu: Session) -> None:
    calls = itertools.count()
    wrong = _zeroed(lambda _call: next(calls) % 7 == 5)
    with install(cpu, Saboteur("moody", "Exp", wrong)):
        _, failure = search(cpu, KNOWN["Exp"], Row("Exp", "float32", "native"), 0, 40)
    assert failure is not None


def test_a_row_that_has_failed_is_left_alone(cpu: Session) -> None:
    with install(cpu, Saboteur("zero", "Exp", _zeroed(lambda _call: True))):
        verdict = run_row(cpu, KNOWN["Exp"], Row("Exp", "float32", "native"), 0)
        failed = list(verdict.failed)
        add_examples(verdict, cpu, KNOWN["Exp"], 0, 5)
    assert (verdict.examples, verdict.failed) == (0, failed)


# What is told ------------------------------------------------------------------------------


def test_the_report_says_how_many(tmp_path: Path) -> None:
    arguments = ["run", "--backend", "cpu", "--level", "3", "--kernels", "Exp"]
    code = main([*arguments, "--dtypes", "float32", "--examples", "9", "--report", str(tmp_path)])
    assert code == 0
    data = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert data["suite"]["examples"] == 9
    tried = {row["mode"]: row["examples"] for row in data["rows"]}
    assert 5 <= tried["native"] <= 9
    assert tried["gradient"] == 0
    assert main(["verify", str(tmp_path)]) == 0
    data["rows"][0]["examples"] = 10
    (tmp_path / "report.json").write_text(json.dumps(data), "utf-8")
    assert main(["verify", str(tmp_path)]) == 1


def test_an_example_is_repeated_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = Variation("odd", 1, "sliced", (33,), (), ((0, 2, 1),)).id
    wrong = "tensorplug_conformance.selftest.misbehaving:negates_nothing"
    assert reproduce("cpu", "Neg", "float32", "native", name) == 0
    assert reproduce("cpu", "Neg", "float32", "native", name, factory=wrong) == 1
    assert name in capsys.readouterr().out
    for stranger in ("example ", 'example ["odd"]', name.replace("odd", "none")):
        with pytest.raises(UnknownCaseError):
            reproduce("cpu", "Neg", "float32", "native", stranger)
    failure = {"case": name, "message": "", "attributes": {}, "inputs": []}
    row = {"kernel": "Neg", "dtype": "float32", "mode": "native", "failures": [failure]}
    report = {"suite": {"version": "9", "seed": 0}, "backend": {"name": "cpu"}, "rows": [row]}
    assert write_scripts(report, tmp_path) == 1
    (path,) = tmp_path.iterdir()
    assert len(path.name) < 120
    compile(path.read_text("utf-8"), path.name, "exec")


@settings(
    max_examples=60,
    database=None,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.sampled_from(sorted(KNOWN)), st.data())
def test_any_variation_of_any_kernel_is_a_call(kernel: str, data: st.DataObject) -> None:
    entry = KNOWN[kernel]
    dtype = data.draw(st.sampled_from(entry.dtypes))
    varied = Variations(entry, dtype)
    if varied.cases:
        case = varied.made(data.draw(strategy(varied)))
        types = [array.dtype for array in arrays(case)]
        own = [array.dtype for array in arrays(varied.made(Variation(Variation.of(case.id).case)))]
        assert types == own
        assert all(array.size <= 512 for array in arrays(case))
