"""Wheels into fresh virtual environments: what a user's pip does, and what is there then."""

from __future__ import annotations

import zipfile
from email.parser import Parser
from importlib.metadata import EntryPoints

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tensorplug.system.distributions import BACKENDS as OFFICIAL

from .conftest import ROOT

EXTENSIONS_OF_OURS = sorted(path.parent for path in ROOT.glob("extensions/*/pyproject.toml"))

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(900)]

LISTING = "import tensorplug as tp; report({b.name: b.state for b in tp.backends()})"

# The same code on every backend. By hand: [[1, 2], [3, 4]] squared is [[7, 10], [15, 22]]; plus x
# that is [[8, 12], [18, 26]], whose sum is 64. The gradient of sum(x * x) is 2 * x.
USE = """
import tensorplug as tp
{first}
x = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
y = tp.matmul(x, x) + x
report({{
    "backend": tp.get_backend(),
    "dtype": str(y.dtype),
    "shape": list(y.shape),
    "y": y.numpy().tolist(),
    "sum": y.sum().numpy().tolist(),
    "gradient": tp.grad(lambda x: (x * x).sum())(x).numpy().tolist(),
}})
"""
USED = {
    "dtype": "float32",
    "shape": [2, 2],
    "y": [[8.0, 12.0], [18.0, 26.0]],
    "sum": 64.0,
    "gradient": [[2.0, 4.0], [6.0, 8.0]],
}

STEP = """
import tensorplug as tp
w, optimizer = tp.asarray([1.0, -2.0]), tp.train.sgd(0.5)
report(optimizer.step(tp.asarray([1.0, 1.0]), optimizer.init(w), w)[0].tolist())
"""

CPU = ("tensorplug-loops", "tensorplug-cpu")  # the second needs the first


def metadata(wheel):
    """Return a wheel's metadata, its entry points and the names of its files."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        texts = {
            name.rpartition("/")[2]: archive.read(name).decode()
            for name in names
            if ".dist-info/" in name and name.endswith(("METADATA", "entry_points.txt"))
        }
    entries = EntryPoints._from_text_for(texts.get("entry_points.txt", ""), None)
    return Parser().parsestr(texts["METADATA"]), entries, names


def test_core_then_backends_then_without_them_again(environment, wheels):
    # The core alone: it imports, lists nothing, and the first op says what to install.
    assert environment.run(LISTING) == {}
    for script, message in [
        (
            "import tensorplug as tp; report(attempt(lambda: tp.asarray([1.0])))",
            "no backend is installed. Try: pip install tensorplug-cpu",
        ),
        (
            "import tensorplug as tp; report(attempt(lambda: tp.set_backend('opencl')))",
            (
                "backend 'opencl' is not installed. "
                'Try: pip install "tensorplug-opencl[cpu]". Installed: none'
            ),
        ),
    ]:
        assert environment.run(script)[:2] == ["BackendNotInstalledError", message]

    environment.pip("install", *(str(wheels[name]) for name in CPU))
    assert environment.run(LISTING) == {"cpu": "available"}
    assert environment.run(USE.format(first="")) == {"backend": "cpu", **USED}

    # Without the extensions all else works, and what they bring says where it is.
    missing = environment.run("import tensorplug as tp; report(attempt(lambda: tp.train))")
    assert missing[:2] == [
        "AttributeError",
        (
            "tensorplug.train is in the distribution tensorplug-train, which is not installed. "
            "Try: pip install tensorplug-train"
        ),
    ]
    environment.pip("install", str(wheels["tensorplug-train"]))
    assert environment.run(STEP) == [0.5, -2.5]

    environment.pip("install", f"{wheels['tensorplug-opencl']}[cpu]")
    assert environment.run(LISTING) == {"cpu": "available", "opencl": "available"}
    assert environment.run(USE.format(first="")) == {"backend": "cpu", **USED}
    chosen = environment.run(USE.format(first="tp.set_backend('opencl')"))
    assert chosen == {"backend": "opencl", **USED}
    by_variable = environment.run(USE.format(first=""), TENSORPLUG_BACKEND="opencl,cpu")
    assert by_variable == {"backend": "opencl", **USED}

    environment.pip("uninstall", "--yes", "tensorplug-opencl")
    assert environment.run(LISTING) == {"cpu": "available"}
    assert environment.run(USE.format(first="")) == {"backend": "cpu", **USED}
    environment.pip("uninstall", "--yes", "tensorplug-cpu")
    assert environment.run(LISTING) == {}


def test_backends_of_third_parties(environment, wheels):
    """The examples are installed as a third party's distribution would be."""
    result = {}
    for name, wheel in wheels.items():
        _, entries, _ = metadata(wheel)
        for entry in entries:
            if entry.group == "tensorplug.backends" and entry.name not in ("cpu", "opencl"):
                result[entry.name] = name
    assert result
    needed = {"tensorplug-loops", *result.values()}
    environment.pip("install", *(str(wheels[name]) for name in needed))
    assert environment.run(LISTING) == dict.fromkeys(result, "available")
    opened = environment.run("import tensorplug as tp\nreport(list(tp.devices()))")
    # Those two need a driver for Vulkan or the like, and a server.
    assert {"webgpu", "remote", *opened} == result.keys()
    for name in opened:
        used = environment.run(USE.format(first=f"tp.set_backend({name!r})"))
        assert used == {"backend": name, **USED}


def test_import_and_listing_load_no_plugins(environment, wheels):
    environment.pip("install", *(str(wheels[name]) for name in CPU))
    readers = ["importlib_metadata", "packaging"]
    heavy = [*readers, "pluggy", "rich", "tensorplug_cpu", "tensorplug.engine.engine"]
    seen = environment.run(f"""
        heavy = {heavy!r}
        import tensorplug as tp
        imported = [name for name in heavy if name in sys.modules]
        names = [backend.name for backend in tp.backends()]
        report([imported, names, [name for name in heavy if name in sys.modules]])
    """)
    assert seen[:2] == [[], ["cpu"]]
    assert set(seen[2]) <= {*readers, "pluggy"}


def test_broken_wheel_beside_a_good_one(environment, good, make_backend, tmp_path):
    """What the other tests write as folders is what pip makes of the same wheels."""
    broken = make_backend("broken", "import a_module_that_is_not_there")
    files = [str(distribution.wheel(tmp_path)) for distribution in (good, broken)]
    environment.pip("install", "--no-index", *files)
    outcome, added, listed = environment.run("""
        import tensorplug as tp
        outcome = attempt(lambda: tp.set_backend("broken"))
        tp.set_backend("good")
        report([outcome, added(tp), listed(tp.backends())])
    """)
    assert outcome[0] == "PluginLoadError"
    for text in ("tensorplug-broken 1.2.3", "a_module_that_is_not_there"):
        assert text in outcome[1]
    assert added == ["float32", [2], [3.0, 7.0], "good"]
    assert {name: info[2] for name, info in listed.items()} == {
        "good": "loaded",
        "broken": "failed",
    }
    environment.pip("uninstall", "--yes", "tensorplug-broken")
    assert environment.run(LISTING) == {"good": "available"}


def files_below(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix() for path in paths if "__pycache__" not in path.parts
    }


# The sources of these examples are templates of `python -m tensorplug new`.
TEMPLATES = {
    f"tensorplug/command_line/templates/{kind}/src/{path}"
    for kind, example in [("backend", "minimal_backend"), ("extension", "op_package")]
    for path in files_below(ROOT / "plugins_example" / example / "src")
}


def test_every_source_file_is_in_its_sdist_and_the_wheel_from_that(distributions, wheels):
    for name, folder in distributions.items():
        expected = files_below(folder / "src")
        if name == "tensorplug":
            expected |= TEMPLATES | {"tensorplug/__init__.pyi", "tensorplug/dispatch/tensor.pyi"}
        _, _, names = metadata(wheels[name])
        packed = {path for path in names if ".dist-info/" not in path}
        assert packed == expected, name
        assert any(path.endswith("/py.typed") for path in packed), name


def test_wheels_say_which_core_they_need_and_what_they_offer(wheels):
    for name, wheel in wheels.items():
        fields, entries, _ = metadata(wheel)
        needed = [Requirement(line) for line in fields.get_all("Requires-Dist", [])]
        on_core = [
            requirement
            for requirement in needed
            if canonicalize_name(requirement.name) == "tensorplug"
        ]
        if name == "tensorplug":
            assert {
                canonicalize_name(requirement.name)
                for requirement in needed
                if not requirement.marker
            } == {
                "numpy",
                "pluggy",
                "importlib-metadata",
                "packaging",
                "ml-dtypes",
            }
            assert not [entry for entry in entries if entry.group.startswith("tensorplug.")]
        else:
            assert [bool(requirement.specifier) for requirement in on_core] == [True], name


def test_the_extra_all_brings_all(wheels):
    fields, _, _ = metadata(wheels["tensorplug"])
    expected = {
        canonicalize_name(requirement.name)
        for requirement in map(Requirement, fields.get_all("Requires-Dist", []))
        if requirement.marker and requirement.marker.evaluate({"extra": "all"})
    }
    ours = {*OFFICIAL.values(), *(f"tensorplug-{path.name}" for path in EXTENSIONS_OF_OURS)}
    assert {name.partition("[")[0] for name in ours} <= expected


@pytest.mark.parametrize("extra", ["cpu", "opencl"])
def test_extras_of_the_core_name_the_backends(extra, wheels):
    fields, _, _ = metadata(wheels["tensorplug"])
    assert extra in fields.get_all("Provides-Extra", [])
    [expected] = [
        requirement
        for requirement in map(Requirement, fields.get_all("Requires-Dist", []))
        if requirement.marker and requirement.marker.evaluate({"extra": extra})
    ]
    backend, entries, _ = metadata(wheels[canonicalize_name(expected.name)])
    assert expected.specifier.contains(backend["Version"])
    assert extra in {entry.name for entry in entries if entry.group == "tensorplug.backends"}


def test_version_of_the_core(environment):
    said, recorded = environment.run("""
        import tensorplug
        from importlib.metadata import version
        report([tensorplug.__version__, version("tensorplug")])
    """)
    assert said == recorded
