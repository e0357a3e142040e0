"""Discovery: what is listed, without any import, and which distribution a name means."""

from __future__ import annotations

import tomllib

import pytest

from tensorplug.engine.settings import Settings
from tensorplug.errors import BackendNotInstalledError
from tensorplug.plugins.metadata import BACKENDS
from tensorplug.plugins.selection import Selection
from tensorplug.system.distributions import BACKENDS as OFFICIAL

RAISES = "raise AssertionError('imported')"
OURS = ("good", "other", "broken")

LISTING = """
import tensorplug as tp
unexpected = [name for name in ("pluggy", "importlib_metadata", "rich") if name in sys.modules]
infos = listed(tp.backends())
report({
    "unexpected": unexpected,
    "infos": infos,
    "imported": [name for name in sys.modules if name.startswith("tensorplug_")],
})
"""


def test_listing_imports_no_plugin(site, good, make_backend):
    site.install(good, make_backend("broken", RAISES))
    seen = site.run(LISTING)
    assert seen["imported"] == []
    assert seen["unexpected"] == []
    assert {name: seen["infos"][name] for name in ("good", "broken")} == {
        "good": ["tensorplug-good", "1.2.3", "available", ""],
        "broken": ["tensorplug-broken", "1.2.3", "available", ""],
    }


def test_first_op_imports_the_chosen_backend_only(site, good, make_backend):
    site.install(good, make_backend("broken", RAISES))
    seen = site.run(
        """
        import tensorplug as tp
        result = added(tp)
        report([result, [n for n in ("tensorplug_broken", "tensorplug_good") if n in sys.modules]])
        """,
        TENSORPLUG_BACKEND="good",
    )
    assert seen == [["float32", [2], [3.0, 7.0], "good"], ["tensorplug_good"]]


def test_cpu_comes_first_then_the_alphabet(site, good, make_backend):
    site.install(good, *(make_backend(name, RAISES) for name in ("cpu", "acme", "zeta")))
    seen = site.run("""
        import tensorplug as tp
        from tensorplug.engine.current import current_engine
        report([current_engine().devices.source.names(), [b.name for b in tp.backends()]])
    """)
    for names in seen:
        assert names[0] == "cpu"
        assert [name for name in names if name in ("acme", "good", "zeta")] == [
            "acme",
            "good",
            "zeta",
        ]


ANY_DISTRIBUTION = (
    "Any distribution can provide a backend, in the entry-point group 'tensorplug.backends'."
)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such", f"backend 'no_such' is not installed. {ANY_DISTRIBUTION} Installed: good"),
        ("gpu", "backend 'gpu' is not installed. Did you mean 'opencl'? Installed: good"),
        ("CUDA:1", "backend 'CUDA' is not installed. Did you mean 'opencl'? Installed: good"),
        ("goood:1", "backend 'goood' is not installed. Did you mean 'good'? Installed: good"),
        ("GO_OD", "backend 'GO_OD' is not installed. Did you mean 'good'? Installed: good"),
        # Installed for other tests, though the settings leave it out: nothing to install.
        ("CPU", "backend 'CPU' is not installed. Did you mean 'cpu'? Installed: good"),
        ("", "'' cannot be the name of a backend. Installed: good"),
        ("a b", "'a b' cannot be the name of a backend. Installed: good"),
        ("good ", "'good ' cannot be the name of a backend. Did you mean 'good'? Installed: good"),
    ],
)
def test_backend_that_is_not_installed(name, message, site, good):
    site.install(good)
    error, said, classes, _ = site.run(
        f"import tensorplug as tp; report(attempt(lambda: tp.set_backend({name!r})))",
        TENSORPLUG_PLUGINS="good",
    )
    assert error == "BackendNotInstalledError"
    assert "LookupError" in classes
    assert said == message


CPU = "Try: pip install tensorplug-cpu."
OPENCL = 'Try: pip install "tensorplug-opencl[cpu]".'


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("cpu", CPU),
        ("CPU", f"Did you mean 'cpu'? {CPU}"),
        ("cuda", f"Did you mean 'opencl'? {OPENCL}"),
        ("opencl", OPENCL),
        ("open_cl", f"Did you mean 'opencl'? {OPENCL}"),
        ("tensorplug-opencl", f"Did you mean 'opencl'? {OPENCL}"),
        ("opncl", f"Did you mean 'opencl'? {OPENCL}"),
        ("OpenCL", f"Did you mean 'opencl'? {OPENCL}"),
        ("nope", ANY_DISTRIBUTION),
        ("tensorplug-nope", ANY_DISTRIBUTION),
    ],
)
@pytest.mark.usefixtures("core_from_an_index")
def test_advice_on_a_missing_backend(name, advice):
    with pytest.raises(BackendNotInstalledError) as caught:
        Selection((), Settings()).pick(BACKENDS, name)
    assert str(caught.value) == f"backend {name!r} is not installed. {advice} Installed: none"


def test_reserved_name():
    with pytest.raises(BackendNotInstalledError) as caught:
        Selection((), Settings()).pick(BACKENDS, "auto")
    assert str(caught.value) == "'auto' cannot be the name of a backend. Installed: none"


def test_advised_distributions_exist(distributions):
    """Each command installs a distribution of this repository, which brings that backend."""
    for name, requirement in OFFICIAL.items():
        named = requirement.partition("[")[0]
        project = tomllib.loads((distributions[named] / "pyproject.toml").read_text("utf-8"))
        assert name in project["project"]["entry-points"][BACKENDS]


@pytest.mark.parametrize(
    "script",
    ["tp.asarray([1.0])", "tp.use_backend('nope').__enter__()", "tp.devices('nope')"],
)
def test_advice_is_the_same_in_every_function(script, site, good):
    site.install(good)
    error, said, _, _ = site.run(
        f"import tensorplug as tp; report(attempt(lambda: {script}))",
        TENSORPLUG_PLUGINS="good",
        TENSORPLUG_BACKEND="nope",
    )
    assert error == "BackendNotInstalledError"
    assert said == f"backend 'nope' is not installed. {ANY_DISTRIBUTION} Installed: good"


def install_twice(site, good, make_backend):
    """Install `good` twice: two distributions that claim the name, only one of which works."""
    site.install(
        good,
        make_backend(
            "x",
            RAISES,
            name="acme-good",
            version="9.9",
            module="acme_good",
            entries={"tensorplug.backends": {"good": "acme_good"}},
        ),
        make_backend("other", RAISES),
    )


COLLISION = """
import tensorplug as tp
first = attempt(lambda: tp.set_backend("good"))
report([first, [[b.distribution, b.state, b.detail] for b in tp.backends() if b.name == "good"]])
"""


def test_two_distributions_that_claim_one_name(site, good, make_backend):
    install_twice(site, good, make_backend)
    [error, message, _, _], states = site.run(COLLISION)
    assert error == "PluginCollisionError"
    assert "backend 'good' comes from acme-good 9.9 and tensorplug-good 1.2.3" in message
    assert "TENSORPLUG_DISABLE_PLUGINS=acme-good:good keeps that of tensorplug-good" in message
    assert states == [
        ["acme-good", "conflict", message],
        ["tensorplug-good", "conflict", message],
    ]


@pytest.mark.parametrize(
    "environment",
    [
        {"TENSORPLUG_PLUGINS": "tensorplug-good:good"},
        {"TENSORPLUG_PLUGINS": " Tensorplug_Good:good , other"},
        {"TENSORPLUG_DISABLE_PLUGINS": "acme-good:good"},
    ],
    ids=str,
)
def test_choosing_between_two_claimants(environment, site, good, make_backend):
    install_twice(site, good, make_backend)
    seen = site.run(
        """
        import tensorplug as tp
        tp.set_backend("good")
        mine = {b.distribution: b.state for b in tp.backends() if b.name == "good"}
        report([added(tp), mine, "acme_good" in sys.modules])
        """,
        **environment,
    )
    assert seen == [
        ["float32", [2], [3.0, 7.0], "good"],
        {"tensorplug-good": "loaded", "acme-good": "disabled"},
        False,
    ]


@pytest.mark.parametrize(
    ("environment", "states", "reason"),
    [
        (
            {"TENSORPLUG_DISABLE_PLUGINS": "good"},
            ("disabled", "available"),
            "DISABLE_PLUGINS=good",
        ),
        ({"TENSORPLUG_PLUGINS": "other"}, ("disabled", "available"), "TENSORPLUG_PLUGINS=other"),
        ({"TENSORPLUG_AUTOLOAD": "0"}, ("disabled", "disabled"), "TENSORPLUG_AUTOLOAD=0"),
        (
            {"TENSORPLUG_AUTOLOAD": "0", "TENSORPLUG_PLUGINS": "other"},
            ("disabled", "available"),
            "TENSORPLUG_PLUGINS=other",
        ),
    ],
    ids=str,
)
def test_disabled_backend(environment, states, reason, site, good, make_backend):
    site.install(good, make_backend("other", RAISES))
    infos, [error, message, _, _], imported = site.run(
        """
        import tensorplug as tp
        infos = listed(tp.backends())
        outcome = attempt(lambda: tp.set_backend("good"))
        report([infos, outcome, "tensorplug_good" in sys.modules])
        """,
        **environment,
    )
    assert (infos["good"][2], infos["other"][2]) == states
    assert error == "BackendUnavailableError"
    for text in ("backend 'good' of tensorplug-good 1.2.3 is installed, but", reason):
        assert text in message
    assert reason in infos["good"][3]
    assert not imported


def test_first_op_with_every_plugin_disabled(site, good):
    site.install(good)
    error, message, _, _ = site.run(
        "import tensorplug as tp; report(attempt(lambda: tp.asarray([1.0])))",
        TENSORPLUG_AUTOLOAD="0",
    )
    assert error == "BackendUnavailableError"
    assert "TENSORPLUG_AUTOLOAD=0" in message
    assert "tensorplug-good 1.2.3" in message


def test_unknown_name_in_the_allow_list_is_a_warning(site, good):
    site.install(good)
    _, _, _, warned = site.run(
        "import tensorplug as tp; report(attempt(lambda: tp.set_backend('good')))",
        TENSORPLUG_PLUGINS="good,gooood",
    )
    [[category, message]] = warned
    assert category == "SettingsWarning"
    assert "'gooood'" in message
    assert "did you mean good?" in message


def test_own_variable_of_an_installed_backend_is_no_warning(site, good):
    site.install(good)
    script = "import tensorplug as tp; report(attempt(lambda: tp.set_backend('good'))[3])"
    assert site.run(script, TENSORPLUG_GOOD_DEVICE="1") == []
    [[category, message]] = site.run(script, TENSORPLUG_BETTER_DEVICE="1")
    assert category == "SettingsWarning"
    assert message.startswith("TENSORPLUG_BETTER_DEVICE is not a variable")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("METADATA", None),
        ("METADATA", "Metadata-Version: 2.1\nVersion: 1.2.3\n"),
        ("METADATA", "Metadata-Version: 2.1\nName: tensorplug-broken\n"),
        ("entry_points.txt", "[tensorplug.backends]\nbroken\n"),
        ("entry_points.txt", "[tensorplug.backends]\nbroken:1 = tensorplug_broken\n"),
    ],
    ids=["no metadata", "no name", "no version", "no entry point", "colon in a name"],
)
def test_unreadable_metadata_leaves_out_that_distribution(file, text, site, good, make_backend):
    site.install(good, make_backend("broken", RAISES))
    path = site.path / "tensorplug_broken-1.2.3.dist-info" / file
    if text is None:
        path.unlink()
    else:
        path.write_text(text, encoding="utf-8")
    outcome, infos = site.run("""
        import tensorplug as tp
        found = []
        report([attempt(lambda: found.extend(tp.backends())), listed(found)])
    """)
    [[category, message]] = outcome[3]
    assert category == "PluginWarning"
    assert "tensorplug_broken-1.2.3.dist-info" in message
    assert "broken" not in infos
    assert infos["good"][2] == "available"


@pytest.mark.parametrize("first_has_entry_point", [True, False])
def test_one_distribution_found_twice(first_has_entry_point, site, good, tmp_path):
    """The first on the path counts, as it does for imports."""
    entries = good.entries if first_has_entry_point else {}
    site.install(type(good)(good.name, "2.0", good.source, entries))
    later = type(site)(tmp_path / "later")
    later.install(type(good)(good.name, "0.0.1", RAISES, good.entries))
    seen = site.run(f"""
        sys.path.append({str(later.path)!r})
        import tensorplug as tp
        report([[i.distribution, i.version] for i in tp.backends() if i.name == "good"])
    """)
    assert seen == ([["tensorplug-good", "2.0"]] if first_has_entry_point else [])


def test_backend_installed_while_the_program_runs(site, good, tmp_path):
    later = type(site)(tmp_path / "later")
    files = {str(later.path / path): text for path, text in good.files().items()}
    seen = site.run(
        f"""
        import pathlib
        sys.path.append({str(later.path)!r})
        import tensorplug as tp
        before = attempt(lambda: tp.set_backend("good"))[0]
        for path, text in {files!r}.items():
            pathlib.Path(path).parent.mkdir(exist_ok=True)
            pathlib.Path(path).write_text(text)
        tp.set_backend("good")
        report([before, added(tp)])
        """
    )
    assert seen == ["BackendNotInstalledError", ["float32", [2], [3.0, 7.0], "good"]]


REGISTER_MINE = (
    "import tensorplug_good as good; tp.register_backend('mine', lambda: good.Numpy('mine'))"
)
SPELLED = """
import tensorplug as tp
{first}
_, _, _, warned = attempt(lambda: [added(tp), added(tp), tp.set_backend("auto")])
report([[category, text.partition("Installed")[0]] for category, text in warned])
"""


@pytest.mark.parametrize(
    ("backends", "first", "names"),
    [
        ("good,opncl", "", {"opncl": "Did you mean 'opencl'? "}),
        ("good:0,goood", "", {"goood": "Did you mean 'good'?"}),
        ("good, nope:1, opncl", "", {"nope:1": ANY_DISTRIBUTION, "opncl": "Did you mean"}),
        ("auto,opncl", "", {"opncl": "Did you mean 'opencl'?"}),
        ("good,opencl,cpu", "", {}),  # other machines may have them
        ("good,other", "", {}),  # it is disabled
        (
            "good,mine",
            REGISTER_MINE,
            {},
        ),
    ],
)
def test_misspelt_names_after_one_that_works(backends, first, names, site, good, make_backend):
    site.install(good, make_backend("other", RAISES))
    warned = site.run(
        SPELLED.format(first=first), TENSORPLUG_BACKEND=backends, TENSORPLUG_PLUGINS="good"
    )
    assert [category for category, _ in warned] == ["BackendWarning"] * len(names)
    for (_, text), (name, advice) in zip(warned, names.items(), strict=True):
        plain = name.partition(":")[0]
        said = f"TENSORPLUG_BACKEND also names {name!r}, but backend {plain!r} is not installed."
        assert said in text
        assert advice in text


@pytest.mark.parametrize(
    ("denied", "meant"),
    [
        ("othr", "other"),
        ("tensorplug-other:othr", "other"),
        ("other", None),
        ("acme:other", None),  # of another machine's distribution
        ("nope", None),
        ("opencl", None),
    ],
)
def test_misspelt_names_of_plugins_to_disable(denied, meant, site, good, make_backend):
    site.install(good, make_backend("other", RAISES), make_backend("opencl2", RAISES))
    warned = site.run(
        "import tensorplug as tp; report(attempt(lambda: added(tp))[3])",
        TENSORPLUG_DISABLE_PLUGINS=denied,
        TENSORPLUG_BACKEND="good",
    )
    said = f"names {denied!r}, but there is no such plugin; did you mean {meant}?"
    expected = [["SettingsWarning", f"TENSORPLUG_DISABLE_PLUGINS {said}"]]
    assert warned == (expected if meant else [])
