"""Every rule against ONNX's own description of its operator, in each version of the opset."""

from __future__ import annotations

import inspect
import math

import onnx
import pytest
from onnx import defs, helper

from tensorplug_onnx.rules import MICROSOFT, known_operators, lookup

OLDEST = 6  # ONNX's tests of PyTorch's exports have it
RENAMED = {"bilinear": "linear"}  # a mode of GridSample, which takes both
FORMAL = defs.OpSchema.FormalParameterOption


def described():
    """Return each schema that holds in some opset from the oldest supported one on."""
    for schema in defs.get_all_schemas_with_history():
        newest = newest_before(schema)
        if not schema.domain and newest is not None and newest < OLDEST:
            continue
        if not schema.deprecated:
            yield schema


def newest_before(schema):
    """Return the last version of the opset for which the schema holds; None if for all later."""
    later = [
        other.since_version
        for other in HISTORY[schema.domain, schema.name]
        if other.since_version > schema.since_version
    ]
    return min(later) - 1 if later else None


HISTORY: dict[tuple[str, str], list[defs.OpSchema]] = {}
for one in defs.get_all_schemas_with_history():
    HISTORY.setdefault((one.domain, one.name), []).append(one)
SCHEMAS = {f"{one.name} {one.domain} {one.since_version}": one for one in described()}


def rule_of(schema):
    oldest = 1 if schema.domain else OLDEST
    return lookup(schema.name, schema.domain, max(schema.since_version, oldest))


RULED = {name: one for name, one in SCHEMAS.items() if rule_of(one) is not None}


@pytest.mark.parametrize("name", RULED)
def test_rules_take_the_attributes_of_the_schema_with_its_defaults(name):
    schema, rule = RULED[name], rule_of(RULED[name])
    assert schema.attributes.keys() <= rule.attributes
    parameters = inspect.signature(rule.function).parameters
    for key, attribute in schema.attributes.items():
        given = attribute.default_value
        if attribute.required or given.type == onnx.AttributeProto.UNDEFINED:
            continue
        expected = helper.get_attribute_value(given)
        expected = expected.decode() if isinstance(expected, bytes) else expected
        found = parameters[key].default
        if isinstance(expected, float):
            assert math.isclose(found, expected, rel_tol=1e-6), key
        elif isinstance(expected, list):
            texts = [one.decode() if isinstance(one, bytes) else one for one in expected]
            assert list(found) == texts, key
        else:
            assert found in (expected, RENAMED.get(expected)), key


@pytest.mark.parametrize("name", RULED)
def test_rules_take_the_inputs_of_the_schema(name):
    schema, rule = RULED[name], rule_of(RULED[name])
    kinds = inspect.signature(rule.function).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in kinds):
        return
    positional = [one for one in kinds if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    required = [one for one in positional if one.default is inspect.Parameter.empty]
    assert not any(one.option == FORMAL.Variadic for one in schema.inputs)
    assert len(required) <= schema.min_input
    assert len(positional) >= schema.max_input


def test_all_rules_have_a_schema():
    unknown = known_operators() - HISTORY.keys()
    assert {domain for domain, _ in unknown} == {MICROSOFT}  # onnxruntime has their schemas
