"""Registries: stacks, all or nothing, whose an entry is, and what changes."""

from __future__ import annotations

import dataclasses
import itertools
import re

import pytest
from tests.core.support.engines import spec_of

from tensorplug.contract.entries import decomposition_entry, kernel_entry
from tensorplug.contract.owner import PROGRAM, Owner
from tensorplug.contract.rule_entries import gradient_entry
from tensorplug.engine.registry import Registry
from tensorplug.errors import ArgumentError, RegistrationError

A, B = Owner("dist-a", "1.0"), Owner("dist-b", "2.0")
SPEC = spec_of("Spec")
TWIN = spec_of("Spec")
OTHER = spec_of("Other")


def kernel(spec=SPEC):
    return kernel_entry(spec, lambda x: x)


def rule(spec=SPEC):
    return gradient_entry(spec, "x", lambda dy: dy)


def decomposition(spec=SPEC):
    return decomposition_entry(spec, lambda x: x)


FAMILIES = {  # how to add one entry, how to find the one in force, what messages call it
    "kernel": (
        lambda entry: {"kernels": [("cpu", entry)]},
        kernel,
        lambda state: state.kernel("Spec", "cpu"),
        "kernel 'Spec' for backend 'cpu'",
    ),
    "gradient": (
        lambda entry: {"rules": [entry]},
        rule,
        lambda state: state.gradient("Spec", "x"),
        "the gradient of 'Spec' with respect to 'x'",
    ),
    "decomposition": (
        lambda entry: {"decompositions": [entry]},
        decomposition,
        lambda state: state.decomposition("Spec"),
        "the decomposition of 'Spec'",
    ),
}


@pytest.fixture(params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


def in_force(registry, family):
    owned = family[2](registry.state)
    return None if owned is None else owned.entry


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_handles_are_removed_in_any_order(family, order):
    added, make = family[:2]
    registry = Registry([SPEC])
    entries = [make() for _ in range(3)]
    handles = [registry.add(A, **added(entry), override=True) for entry in entries]
    left = list(entries)
    for at in order:
        assert in_force(registry, family) is left[-1]
        handles[at].remove()
        handles[at].remove()  # twice does nothing
        left.remove(entries[at])
    assert in_force(registry, family) is None


def test_a_second_one_needs_override(family):
    added, make, _, what = family
    registry = Registry([SPEC])
    first = make()
    registry.add(A, **added(first))
    message = f"{what} is already registered by dist-a 1.0; dist-b 2.0 must set override=True"
    with pytest.raises(RegistrationError, match=re.escape(message)):
        registry.add(B, **added(make()))
    assert in_force(registry, family) is first
    second = make()
    saying_so = dataclasses.replace(second, override=True)
    for entry, options in ((second, {"override": True}), (saying_so, {})):
        with registry.add(B, **added(entry), **options):
            assert in_force(registry, family) is entry
        assert in_force(registry, family) is first


def test_the_programs_kernels_stay_above_a_plugins(family):
    added, make = family[:2]
    registry = Registry([SPEC])
    mine, theirs = make(), make()
    handle = registry.add(PROGRAM, **added(mine))
    registry.add(A, **added(theirs))
    assert in_force(registry, family) is mine
    with pytest.raises(RegistrationError, match="already registered by"):
        registry.add(PROGRAM, **added(make()))
    handle.remove()
    assert in_force(registry, family) is theirs


def test_a_context_manager_removes_also_after_an_error(family):
    added, make = family[:2]
    registry = Registry([SPEC])
    with pytest.raises(ZeroDivisionError), registry.add(A, **added(make())):
        _ = 1 / 0
    assert in_force(registry, family) is None


FAILING = [  # what is added together, a part of the message
    ({"kernels": [("cpu", kernel(OTHER)), ("cpu", kernel(OTHER))]}, "already registered"),
    ({"kernels": [("cpu", kernel(OTHER)), ("cpu", kernel(TWIN))]}, "defines a spec 'Spec'"),
    ({"kernels": [("x", kernel(OTHER))], "rules": [rule()]}, "already registered by dist-a"),
    (
        {"rules": [rule(OTHER)], "decompositions": [decomposition(TWIN)]},
        "defines a spec 'Spec'",
    ),
]


@pytest.mark.parametrize(("addition", "message"), FAILING)
def test_all_or_nothing(addition, message):
    registry = Registry([SPEC])
    registry.add(A, rules=[rule()])
    before = registry.state
    with pytest.raises(RegistrationError, match=message):
        registry.add(B, **addition)
    assert registry.state is before


def test_two_specs_of_one_name():
    registry = Registry()
    registry.add(A, kernels=[("cpu", kernel(SPEC))])
    with pytest.raises(RegistrationError, match=r"dist-b 2\.0 defines a spec 'Spec'"):
        registry.add(B, kernels=[("other", kernel(TWIN))])
    with pytest.raises(ArgumentError, match="another kernel spec has the name 'Spec'"):
        registry.spec(TWIN)
    assert registry.spec(SPEC) is SPEC
    assert registry.spec(OTHER) is OTHER  # its name is free


def test_a_spec_comes_and_goes_with_its_entries():
    registry = Registry()
    with registry.add(A, kernels=[("cpu", kernel(OTHER))]):
        assert registry.spec("Other") is OTHER
    with pytest.raises(ArgumentError, match="no kernel is called 'Other'"):
        registry.spec("Other")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("Spce", "no kernel is called 'Spce'; did you mean Spec?"),
        ("Qqqq", "no kernel is called 'Qqqq'"),
        (5, "kernel must be a KernelSpec or its name, got 5"),
        (None, "kernel must be a KernelSpec or its name, got None"),
    ],
)
def test_an_unknown_spec(asked, message):
    with pytest.raises(ArgumentError) as caught:
        Registry([SPEC, OTHER]).spec(asked)
    assert str(caught.value) == message


def test_listeners_hear_of_every_change_and_of_no_failure():
    registry = Registry([SPEC])
    heard = []
    registry.on_change(lambda: heard.append(registry.state.version))
    handle = registry.add(A, kernels=[("cpu", kernel())])
    with pytest.raises(RegistrationError):
        registry.add(B, kernels=[("cpu", kernel())])
    handle.remove()
    handle.remove()
    assert heard == [1, 2]


def test_removal_by_name():
    registry = Registry([SPEC])
    registry.add(A, kernels=[("cpu", kernel())], rules=[rule()])
    registry.add(B, kernels=[("cpu", kernel())], override=True)
    registry.remove_kernel("Spec", "cpu")
    assert registry.state.kernel("Spec", "cpu").owner is A
    registry.remove_kernel("Spec", "cpu")
    registry.remove_gradient("Spec")
    for call, message in [
        (lambda: registry.remove_kernel("Spec", "cpu"), "kernel 'Spec' is not registered for ba"),
        (lambda: registry.remove_gradient("Spec"), "no gradient of 'Spec' is registered"),
        (
            lambda: registry.remove_gradient("Spec", "y"),
            "no gradient of 'Spec' with respect to 'y",
        ),
    ]:
        with pytest.raises(RegistrationError, match=message):
            call()


def test_owners_as_text():
    assert [str(item) for item in (A, PROGRAM)] == ["dist-a 1.0", "the running program"]
