"""The generated page of specs is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import spec_calls
import spec_page
import spec_questions
import spec_texts
from spec_edges import ANSWERS, answer

from tensorplug.plugin import dtypes, specs
from tensorplug.plugins import catalogue
from tensorplug_conformance.corpus import Corpus
from tensorplug_conformance.denominator import entries

CATALOGUE = {spec.name: spec for spec in catalogue.catalogue()}
DOCS = Path(__file__).parents[2] / "docs"
EDGE = re.compile(r"^- edge, ([^:]+): .* \(case `(.+)` in (\w+)\)$", re.MULTILINE)
SECTION = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def page():
    return spec_page.page()


@pytest.fixture(scope="module")
def sections(page):
    return dict(SECTION.findall(page))


def test_every_spec_has_a_section(sections):
    assert set(sections) == set(CATALOGUE)


def test_the_constants_are_those_of_the_plugin_module(sections):
    for name, text in sections.items():
        constant = re.search(r"`specs\.(\w+)`", text)
        assert getattr(specs, constant[1]) is CATALOGUE[name]


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_section_is_complete(name, sections):
    text, spec = sections[name], CATALOGUE[name]
    missing = [
        f"attribute {attribute!r}: {what}"
        for attribute in spec.attributes
        for what, found in (
            ("a form (Attribute.form)", spec.attributes[attribute].form),
            ("a meaning (spec_texts.MEANINGS)", spec_page.meaning(spec, attribute)),
        )
        if not found
    ]
    if len(spec_page.shape_texts(spec)) != len(spec.output_names):
        missing.append("a shape for every output (spec_texts.SHAPES)")
    if "dtype: ;" in text:
        missing.append("the dtype of an output (spec_texts.DTYPES)")
    assert not missing, f"{name} needs {', '.join(missing)}"


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_the_texts_name_inputs_and_attributes_of_the_spec(name):
    spec = CATALOGUE[name]
    known = {*spec.input_names, *spec.attributes}
    texts = [*spec_page.shape_texts(spec), spec_texts.DTYPES.get(name, "")]
    texts += [spec_page.meaning(spec, attribute) for attribute in spec.attributes]
    texts += [answer(question, name) for question in ANSWERS]
    assert {word for text in texts for word in re.findall(r"`(\w+)`", text)} <= known


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_shape_that_is_said_to_be_an_inputs_is(name):
    spec = CATALOGUE[name]
    for at, text in enumerate(spec_page.shape_texts(spec)):
        first = f"that of `{spec.input_names[0]}`" if spec.input_names else ""
        named = first if text == spec_texts.RULES["same"] else text
        same = re.fullmatch(r"(that of )?`(\w+)`", named)
        for call in spec_calls.calls(spec) if same else ():
            types = dict(zip(spec.input_names, call.types, strict=True))
            wanted = types[same[2]].shape if same[1] else call.attributes[same[2]]
            assert call.outputs[at].shape == wanted


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_section_says_what_happens_at_the_edges_that_cases_ask_for(name, sections):
    spec = CATALOGUE[name]
    unsaid = [question for question in spec_questions.owed(spec) if not answer(question, name)]
    assert not unsaid, f"{name} needs answers in spec_edges.ANSWERS: {unsaid}"
    shown = EDGE.findall(sections[name])
    for question, case, dtype in shown:
        cases = entries()[name].generate(Corpus(dtypes.of(dtype), 0, name))
        assert case in {case.id for case in cases}, question
    assert [question for question, *_ in shown] == [
        question for question in spec_questions.asking(spec) if answer(question, name)
    ]


@pytest.mark.parametrize("question", spec_questions.QUESTIONS)
def test_each_answer_is_of_a_kernel_that_a_case_asks(question):
    names = [name for names in ANSWERS[question].values() for name in names.split()]
    assert len(set(names)) == len(names) > 1
    assert [name for name in names if question not in spec_questions.asking(CATALOGUE[name])] == []


def test_no_text_is_of_a_spec_that_is_gone():
    known = set(CATALOGUE)
    assert set(spec_texts.SHAPES) | set(spec_texts.DTYPES) <= known
    for kernel, attribute in spec_texts.MEANINGS_OF:
        assert attribute in CATALOGUE[kernel].attributes
    used = {attribute for spec in CATALOGUE.values() for attribute in spec.attributes}
    assert set(spec_texts.MEANINGS) <= used


def test_the_links_lead_to_one_heading_each(page):
    headings = [spec_page.anchor(text) for text in re.findall(r"^#+ (.+)$", page, re.MULTILINE)]
    for link in re.findall(r"\]\(#([^)]+)\)", page):
        assert headings.count(link) == 1, link


def test_the_files_that_it_links_to_exist(page):
    for link in set(re.findall(r"\]\(([^#)]+)\)", page)) - {"gradients_table.md"}:
        assert (DOCS / link).is_file(), link
