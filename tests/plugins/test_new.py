"""``python -m tensorplug new``: complete projects, and refused names and options."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import tensorplug as tp
from tensorplug.command_line import new
from tensorplug.command_line.commands import main
from tensorplug.command_line.new_names import Names, checked
from tensorplug.errors import ArgumentError

ROOT = Path(__file__).parents[2]
KINDS = ["backend", "c", "dialect", "extension"]
LONGEST = "a-name-of-thirty-letters-0-1-2"
NAMES = ["x", "two-words", LONGEST]


def make(name, kind="backend", folder=None, author="", license=new.LICENSE):
    return new.create(name, kind, folder, author, license)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=NAMES)
def project(request, kind, tmp_path):
    return make(request.param, kind, tmp_path / "project")


# What is written --------------------------------------------------------------------------


def test_no_name_of_the_templates_is_left(project):
    files = [path for path in project.folder.rglob("*") if path.is_file()]
    assert {path.relative_to(project.folder).as_posix() for path in files} == set(project.written)
    for path in files:
        for name in ("acme", "minimal", "swish"):
            assert name not in path.relative_to(project.folder).as_posix().lower()
            assert name not in path.read_text("utf-8").lower(), path
        if path.suffix == ".py":
            compile(path.read_text("utf-8"), path, "exec")


def test_all_files_are_written(project):
    package = f"src/{project.names.package}"
    assert set(project.written) >= {
        *("pyproject.toml", "README.md", "LICENSE", ".gitignore", "tests/test_plugin.py"),
        *(".github/workflows/certify.yml", f"{package}/py.typed", f"{package}/plugin.py"),
    }
    assert ("expectations.toml" in project.written) == (project.kind != "extension")


def test_workflows_keep_forks_from_hardware(project):
    """Each run is one of its kind; what forks start runs elsewhere."""
    folder = project.folder / ".github/workflows"
    texts = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert ("hardware.yml" in texts) == (project.kind != "extension")
    for name, text in texts.items():
        assert "concurrency:" in text
        assert ("pull_request" in text) == (name == "certify.yml")
        assert ("environment: hardware" in text) == (name == "hardware.yml")
        assert ("self-hosted" in text) == (name == "hardware.yml")


def test_actions_are_commits():
    """A tag can be moved to other code. The templates and this repository use the same commits."""
    folders = [ROOT, *(ROOT / "core/src/tensorplug/command_line/templates").iterdir()]
    texts = [path.read_text("utf-8") for f in folders for path in f.glob(".github/workflows/*")]
    used = {one for text in texts for one in re.findall(r"uses: (.*)", text)}
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in used)
    assert len({one.partition("@")[0] for one in used}) == len(used) > 3


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_project_passes_its_own_linter(project, command):
    result = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--no-cache", "."],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("kind", ["backend", "dialect"])
@pytest.mark.parametrize(("library", "ending"), [("", "-any.whl"), ("libchip.so", None)])
def test_a_wheel_with_a_library_names_its_platform(kind, library, ending, tmp_path):
    made = make("chip", kind, tmp_path / "project")
    if library:
        (made.folder / "src" / made.names.package / library).write_bytes(b"compiled")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=made.folder, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(ending or f"-py3-none-{platform}.whl")
    held = {path.rpartition("/")[2] for path in ZipFile(wheel).namelist()}
    assert library in held or not library


def test_metadata(project):
    table = tomllib.loads((project.folder / "pyproject.toml").read_text("utf-8"))
    names, about = project.names, table["project"]
    group, name = "backends", names.name
    if project.kind == "extension":
        group, name = "extensions", names.identifier
    assert about["entry-points"] == {f"tensorplug.{group}": {name: f"{names.package}.plugin"}}
    assert (about["name"], about["license"]) == (names.distribution, "Apache-2.0")
    assert about["authors"] == [{"name": f"The {names.distribution} developers"}]
    extras = about["optional-dependencies"]
    for requirement in map(Requirement, [*about["dependencies"], *extras["test"]]):
        if requirement.name.startswith("tensorplug"):
            assert requirement.specifier.contains(tp.__version__), requirement


def test_places_to_replace_are_marked(project):
    marked = {
        path.stem
        for path in (project.folder / "src").rglob("*.*")
        if path.suffix in {".py", ".c"} and "REPLACE" in path.read_text("utf-8")
    }
    assert (
        marked
        == {
            "backend": {"plugin", "backend", "driver", "kernels"},
            "c": {"device", "kernels"},
            "dialect": {"plugin", "backend", "device", "dialect"},
            "extension": {"op", "cpu", "opencl", "gradients", "decompositions", "cases"},
        }[project.kind]
    )
    assert "grep -rn REPLACE src" in (project.folder / "README.md").read_text("utf-8")


@pytest.mark.parametrize(("kind", "most"), [("backend", 425), ("c", 340), ("dialect", 250)])
def test_a_backend_is_small(kind, most, tmp_path):
    make("small", kind, folder=tmp_path)
    files = (tmp_path / "src").rglob("*.py")
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= most


def test_spellings_of_a_name():
    names = Names.of("acme-gpu")
    assert (names.distribution, names.package) == ("tensorplug-acme-gpu", "tensorplug_acme_gpu")
    assert (names.identifier, names.title) == ("acme_gpu", "AcmeGpu")


def test_author_and_licence(kind, tmp_path):
    make("x", kind, tmp_path, "Ada Acme & Söhne", "MIT OR Apache-2.0")
    about = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]
    assert about["authors"] == [{"name": "Ada Acme & Söhne"}]
    assert about["license"] == "MIT OR Apache-2.0"
    lines = (tmp_path / "LICENSE").read_text("utf-8").splitlines()
    assert lines[:2] == [
        "Copyright: Ada Acme & Söhne",
        "SPDX-License-Identifier: MIT OR Apache-2.0",
    ]


def test_command_prints_the_next_steps(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "hard-tanh", "--extension", "--license", "MIT"]) == 0
    said = capsys.readouterr().out
    for name in ("tensorplug-hard-tanh: ", "cd tensorplug-hard-tanh", "--kernels HardTanh"):
        assert name in said
    assert (tmp_path / "tensorplug-hard-tanh/src/tensorplug_hard_tanh/op.py").is_file()
    assert main(["new", "acme", "--dialect"]) == 0
    assert "It computes with a C compiler." in capsys.readouterr().out
    assert (tmp_path / "tensorplug-acme/src/tensorplug_acme/dialect.py").is_file()


# What is refused --------------------------------------------------------------------------

# The name, the kind, and what the error says.
REFUSED = [
    ("Acme", "backend", "Try: acme"),
    ("acme_gpu", "backend", "Try: acme-gpu"),
    ("tensorplug-acme", "backend", "Try: acme"),
    ("a b", "extension", "Try: a-b"),
    ("-a", "backend", "Try: a"),
    ("a--b", "backend", "Try: a-b"),
    ("ß", "backend", "is not a valid name"),
    ("", "backend", "is not a valid name"),
    ("3d", "backend", "is not a valid name"),
    ("../up", "backend", "Try: up"),
    ("a" * 31, "backend", "at most 30"),
    ("class", "backend", "Python keyword"),
    ("lambda", "extension", "Python keyword"),
    ("auto", "backend", "a name of tensorplug itself"),
    ("host", "backend", "a name of tensorplug itself"),
    ("opencl", "backend", "a name of tensorplug itself"),
    ("conformance", "extension", "a name of tensorplug itself"),
    (
        "minimal",
        "backend",
        "backend 'minimal' is already installed, by tensorplug-example-minimal",
    ),
    ("example-minimal", "backend", "pip uninstall tensorplug-example-minimal"),
    ("example-swish", "extension", "tensorplug-example-swish 0.1.0 is already installed"),
    ("exp", "extension", "tensorplug already has 'exp'"),
    ("batch-mat-mul", "extension", "tensorplug already has 'batch_mat_mul'"),
    ("squared-difference", "extension", "tensorplug already has 'squared_difference'"),
    ("reshape", "extension", "tensorplug already has 'reshape'"),
    ("nn", "extension", "tensorplug already has 'nn'"),
    ("tolist", "extension", "tensorplug already has 'tolist'"),
]


@pytest.mark.parametrize(("name", "kind", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_name(name, kind, message, tmp_path):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make(name, kind, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["exp", "relu", "x2", "a-1"])
def test_accepted_name(name):
    assert checked(name, "backend") == Names.of(name)


@pytest.mark.parametrize("name", ["tp", "np", "float", "tuple", "print"])
def test_an_op_does_not_hide_what_its_project_uses(name):
    with pytest.raises(ArgumentError, match=f"{name!r} would hide another object"):
        checked(name, "extension")
    assert checked(f"{name}-like", "extension").name == f"{name}-like"


@pytest.mark.parametrize("occupied", ["file", ".hidden", ".git/config"])
def test_existing_files_stay(occupied, tmp_path):
    path = tmp_path / occupied
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    if occupied.startswith(".git/"):
        make("x", folder=tmp_path)
        assert (tmp_path / "pyproject.toml").is_file()
    else:
        with pytest.raises(ArgumentError, match=r"not empty.*--directory"):
            make("x", folder=tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == [occupied]
    assert path.read_text() == "mine"


def test_folder_that_cannot_be_made(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/below"):
        assert main(["new", "x", "--directory", str(tmp_path / folder)]) == 2
        assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"author": 'A "B"'}, "author"),
        ({"author": "A\n"}, "author"),
        ({"license": "my own"}, "SPDX"),
        ({"license": 'MIT"'}, "SPDX"),
        ({"license": ""}, "SPDX"),
    ],
)
def test_options_that_would_break_the_metadata(options, message, tmp_path):
    with pytest.raises(ArgumentError, match=message):
        make("x", folder=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


# A backend with several devices ------------------------------------------------------------

# What a project's author replaces first: the dtypes and the number of devices.
DEVICES = {
    "backend.py": {
        "    dtypes = dt.BOOL | dt.INTEGER | {dt.float32, dt.float64}\n": "",
        "    def __init__(self) -> None:\n": """
    def __init__(self, number: int) -> None:
        double = {dt.float64} if number else set()
        self.dtypes = dt.BOOL | dt.INTEGER | {dt.float32} | double
""",
    },
    "plugin.py": {
        'not in (None, "0")': 'not in (None, "0", "1")',
        "return AcmeBackend()": "return AcmeBackend(int(device or 0))",
        "import Backend, ": "import Backend, DeviceInfo, ",
        "@hookimpl\ndef tensorplug_kernels": """
@hookimpl
def tensorplug_devices() -> list[DeviceInfo]:
    return [DeviceInfo("Acme GPU"), DeviceInfo("Acme GPU with double precision")]


@hookimpl
def tensorplug_kernels""",
    },
}


@pytest.mark.parametrize(
    ("kind", "devices"),
    [
        ("backend", {}),
        ("backend", DEVICES),
        pytest.param("dialect", {}, marks=pytest.mark.slow),
    ],
    ids=["one device", "two devices", "by a C compiler"],
)
def test_a_projects_tests_pass_whatever_its_devices(kind, devices, tmp_path):
    project = make("acme", kind, folder=tmp_path)
    for name, changes in devices.items():
        path = tmp_path / "src/tensorplug_acme" / name
        text = path.read_text("utf-8")
        for old, replacement in changes.items():
            assert text.count(old) == 1, old
            text = text.replace(old, replacement)
        path.write_text(text, "utf-8")
    about = tmp_path / "src/tensorplug_acme-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tensorplug-acme\nVersion: 0.1.0\n"
    )
    (about / "entry_points.txt").write_text(
        f"[tensorplug.backends]\nacme = {project.names.package}.plugin\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "CFLAGS": "-O1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


# From a wheel to a certificate ------------------------------------------------------------


@pytest.mark.packaging
@pytest.mark.timeout(900)
def test_projects_are_built_installed_tested_and_certified(environment, wheels, tmp_path):
    environment.module(tmp_path, "tensorplug", "new", "acme-gpu")
    environment.module(tmp_path, "tensorplug", "new", "hard-swish", "--extension")
    names = ["acme-gpu", "hard-swish"]
    built = tmp_path / "wheels"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps"),
            *("--no-build-isolation", "--wheel-dir", str(built)),
            *(str(tmp_path / f"tensorplug-{name}") for name in names),
        ],
        check=True,
        timeout=600,
    )
    others = ("tensorplug-loops", "tensorplug-cpu", "tensorplug-conformance", "tensorplug-train")
    needed = [*(wheels[name] for name in others), *built.glob("*.whl")]
    environment.pip("install", "pytest", *map(str, needed))
    for name in names:
        environment.module(tmp_path / f"tensorplug-{name}", "pytest", "-q")

    # Its kernels are those of plugins_example/minimal_backend, which is certified at night.
    backend = certified(environment, tmp_path, "acme-gpu", "--level", "1")
    assert backend["conformant"] is True
    assert backend["backend"]["distribution"] == "tensorplug-acme-gpu"
    op = certified(environment, tmp_path, "cpu", "--level", "3", "--kernels", "HardSwish")
    passed = {row["mode"] for row in op["rows"] if row["status"].startswith("pass")}
    assert passed == {"native", "decomposed", "gradient"}
    assert not {row["status"] for row in op["rows"]} & {"fail", "missing", "fallback"}


def certified(environment, folder, backend, *arguments):
    """Return the report of a run that must succeed."""
    out = folder / f"report-{backend}"
    environment.module(
        folder / "tensorplug-acme-gpu",
        *("tensorplug_conformance", "run", "--backend", backend, "--report", str(out)),
        *("--expect", "expectations.toml", *arguments),
    )
    environment.module(folder, "tensorplug_conformance", "verify", str(out / "report.json"))
    return json.loads((out / "report.json").read_text("utf-8"))
