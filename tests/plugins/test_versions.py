"""Versions, specifiers and markers agree with the `packaging` library, the reference for both."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import default_environment
from packaging.requirements import Requirement as ReferenceRequirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion
from packaging.version import Version as ReferenceVersion

from tensorplug.plugins.requirements import environment, marker_holds, normalize, requirements_on
from tensorplug.plugins.versions import Specifier, Version, parse_specifiers

VERSIONS = [
    *("0.1", "0.1.0", "0.1.1", "0.2.0.dev1", "0.2a1", "0.2a1.dev2", "0.2.0b2", "0.2rc1"),
    *("0.2", "0.2.post1", "0.2.post1.dev3", "0.2a1.post2", "0.2+local.1", "0.2+local.10"),
    *("0.2.post1+abc", "1", "1.0", "1.0.0", "1.0.1", "1.10", "1.9", "1!0.1", "2024.1.31"),
]
SPELLINGS = [
    "v1.0",
    " 1.0 ",
    "1.0-ALPHA.1",
    "1.0_rev_2",
    "1.0-3",
    "1.0.Preview",
    "1.0c2",
    "1.0-dev",
]
BAD_VERSIONS = ["", "one", "1.", "1..0", "1.0-", "1.0+", "1.0+a..b", "1.0 beta", "!1", "1.0.*"]
OPERATORS = ["==", "!=", "<=", ">=", "<", ">", "~=", "==="]


def allowed(specifier, version):
    """What the reference says, or None if the specifier is none."""
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return None


@pytest.mark.parametrize("text", [*VERSIONS, *SPELLINGS])
def test_parts_of_a_version(text):
    ours, reference = Version.parse(text), ReferenceVersion(text)
    assert (ours.epoch, ours.release, ours.pre, ours.post, ours.dev, ours.local) == (
        reference.epoch,
        reference.release,
        reference.pre,
        reference.post,
        reference.dev,
        reference.local,
    )


@pytest.mark.parametrize("text", BAD_VERSIONS)
def test_text_that_is_no_version(text):
    with pytest.raises(InvalidVersion):
        ReferenceVersion(text)
    with pytest.raises(ValueError, match="is not a version"):
        Version.parse(text)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(VERSIONS, repeat=2)))
def test_order_of_versions(a, b):
    ours = Version.parse(a).key, Version.parse(b).key
    reference = ReferenceVersion(a), ReferenceVersion(b)
    assert (ours[0] < ours[1], ours[0] == ours[1]) == (
        reference[0] < reference[1],
        reference[0] == reference[1],
    )


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("wanted", [*VERSIONS, "0.2.*", "1.*", "0.2a1.*", "1!0.*"])
def test_specifiers(operator, wanted):
    specifier = f"{operator}{wanted}"
    for version in VERSIONS:
        reference = allowed(specifier, version)
        if reference is None:
            with pytest.raises(ValueError, match=r"."):
                Specifier.parse(specifier)
        else:
            ours = Specifier.parse(specifier).allows(Version.parse(version))
            assert ours == reference, f"{version} {specifier}"


@pytest.mark.parametrize(
    "text", ["", "1.0", "=1.0", "=>1.0", ">=", ">=one", "~=1", ">=1.*", "> 1 2"]
)
def test_text_that_is_no_specifier(text):
    with pytest.raises(ValueError, match=r"is not a version|~= needs|may end in"):
        Specifier.parse(text)


NUMBER = st.integers(0, 3)
PART = st.sampled_from(["", "a1", "b2", "rc1", ".post1", ".dev1", "a1.dev2", "rc1.post1"])
RELEASE = st.lists(NUMBER, min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))
ANY_VERSION = st.builds(str.__add__, RELEASE, PART)
ANY_SPECIFIER = st.builds(
    lambda operator, version, star: operator + version + star,
    st.sampled_from(OPERATORS),
    ANY_VERSION,
    st.sampled_from(["", "", ".*"]),
)


@settings(deadline=None)
@given(st.lists(ANY_SPECIFIER, max_size=3), ANY_VERSION)
def test_any_specifiers(specifiers, version):
    text = ",".join(specifiers)
    reference = allowed(text, version)
    if reference is None:
        with pytest.raises(ValueError, match=r"."):
            parse_specifiers(text)
    else:
        ours = all(
            parse_specifier.allows(Version.parse(version))
            for parse_specifier in parse_specifiers(text)
        )
        assert ours == reference


def test_marker_variables_are_the_reference_s():
    reference = dict(default_environment())
    assert environment() == {**reference, "extra": ""}


HERE = {**environment(), "python_version": "3.12", "sys_platform": "linux", "os_name": "posix"}
HERE["platform_release"] = "6.1.0-generic"
MARKERS = [
    "python_version >= '3.11'",
    'python_version<"3.9"',
    "python_version == '3.*'",
    "'3.10' < python_version",
    "python_version ~= '3.11'",
    "python_version in '3.11 3.12'",
    "python_version not in '3.11 3.12'",
    "sys_platform == 'win32' or os_name == 'posix' and python_version > '3.11'",
    "python_version > '3' or os_name == 'nt'",
    "python_version < '3' and os_name == 'posix'",
    "(sys_platform == 'win32' or os_name == 'posix') and python_version > '3.12'",
    "sys_platform != 'linux' and (os_name == 'nt' or os_name == 'posix')",
    "sys_platform > 'darwin'",
    "sys_platform < 'zos'",
    "sys_platform >= 'linux'",
    "sys_platform <= 'darwin'",
    "sys_platform != 'linux'",
    "platform_release >= '6.1'",
    "platform_release == '6.1.0-generic'",
    "extra == 'opencl'",
]


@pytest.mark.parametrize("marker", MARKERS)
def test_markers(marker):
    reference = ReferenceRequirement(f"tensorplug; {marker}").marker
    assert reference is not None
    assert marker_holds(marker, HERE) == reference.evaluate(HERE)


@pytest.mark.parametrize(
    "marker",
    [
        "python_version",
        "python_version >=",
        "pythn_version > '3'",
        "python_version > '3' and",
        "(python_version > '3'",
        "python_version > '3')",
        "python_version not '3'",
        "sys_platform ~= 'linux'",
        "python_version > 3",
        "''",
    ],
)
def test_markers_that_cannot_be_read(marker):
    with pytest.raises(ValueError, match="cannot be read"):
        marker_holds(marker, HERE)


@pytest.mark.parametrize(
    ("line", "conditions"),
    [
        ("tensorplug", []),
        ("tensorplug>=0.1,<0.2", [">=0.1", "<0.2"]),
        ("Tensor_Plug (>=1)", None),
        ("TENSORPLUG (>=1)", [">=1"]),
        ("tensorplug[cpu,cli] ~= 0.1", ["~=0.1"]),
        ("tensorplug @ https://example.org/tensorplug-9.zip", []),
        ("tensorplug>=9; python_version < '3'", None),
        ("tensorplug>=9; extra == 'new'", None),
        ("tensorplug>=0.1; python_version >= '3'", [">=0.1"]),
        ("tensorplug-cpu>=9", None),
        ("numpy what is this", None),
    ],
)
def test_requirements_on_the_core(line, conditions):
    found = [
        [str(specifier) for specifier in requirement.specifiers]
        for requirement in requirements_on("tensorplug", [line, "numpy>=2"])
    ]
    assert found == ([] if conditions is None else [conditions])


@pytest.mark.parametrize("line", ["tensorplug ? 1", "tensorplug>=1; never", "tensorplug>=1,,<x"])
def test_requirements_that_cannot_be_read(line):
    with pytest.raises(ValueError, match=r"cannot be read|is not a version"):
        requirements_on("tensorplug", [line])


@pytest.mark.parametrize("name", ["Acme_Ops", "acme.ops", "ACME--ops", "acme-_.ops"])
def test_names_are_normalised(name):
    assert normalize(name) == "acme-ops"
