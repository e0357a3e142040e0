"""Plugins that fail in unusual ways: the error is ours, names them, and harms no other plugin."""

from __future__ import annotations

import pytest

from .conftest import GOOD_SOURCE

UNPRINTABLE = """
class Unprintable(Exception):
    def __str__(self):
        raise SystemExit("not even this")

"""

# What follows a sound backend called odd, and what its error must say.
SOURCES = {
    "an import error without a text": (
        UNPRINTABLE + "raise Unprintable",
        "PluginLoadError",
        ("raised Unprintable: <its __str__ raised SystemExit> while it was imported",),
    ),
    "a reason without a text": (
        UNPRINTABLE
        + """
from tensorplug.plugin import BackendUnavailableError
class Absent(Unprintable, BackendUnavailableError): pass
@hookimpl
def tensorplug_create_backend(device):
    raise Absent
""",
        "BackendUnavailableError",
        ("is not available here: <its __str__ raised SystemExit>",),
    ),
    "a backend whose attributes raise": (
        """
class Raising:
    def __getattr__(self, name):
        raise RuntimeError("no " + name)
@hookimpl
def tensorplug_create_backend(device):
    return Raising()
""",
        "PluginLoadError",
        ("raised RuntimeError: no name while its backend was checked",),
    ),
    "a backend whose optional attributes raise": (
        """
class Raising(Numpy):
    def __getattr__(self, name):
        raise RuntimeError("no " + name)
@hookimpl
def tensorplug_create_backend(device):
    return Raising("odd")
""",
        "PluginLoadError",
        ("raised RuntimeError: no ", "while its backend was checked"),
    ),
    "a backend without a name that can be shown": (
        """
class Nameless:
    def __repr__(self):
        raise OSError("no repr")
class Raising(Numpy):
    def __init__(self):
        super().__init__(Nameless())
@hookimpl
def tensorplug_create_backend(device):
    return Raising()
""",
        "PluginLoadError",
        ("raised OSError: no repr while its backend was checked",),
    ),
    "results of a hook that cannot be shown": (
        """
class Nameless:
    def __repr__(self):
        raise OSError("no repr")
@hookimpl
def tensorplug_kernels():
    return [Nameless()]
""",
        "RegistrationError",
        ("tensorplug_kernels returned <its __repr__ raised OSError>, a Nameless",),
    ),
    "terminal escapes in an error": (
        'raise OSError("\\x1b]0;owned\\x07\\x1b[2J\\u202eno driver\\nsee\\tits manual\\x9b1m")',
        "PluginLoadError",
        (r"\x1b]0;owned\x07\x1b[2J\u202eno driver", "\nsee\tits manual" + r"\x9b1m while"),
    ),
}


@pytest.mark.parametrize(("source", "error", "says"), SOURCES.values(), ids=SOURCES)
def test_errors_of_hostile_backends(source, error, says, site, good, make_backend):
    site.install(good, make_backend("odd", GOOD_SOURCE.replace("good", "odd") + source))
    seen = site.run("""
        import tensorplug as tp
        first = attempt(lambda: tp.set_backend("odd"))
        second = attempt(lambda: tp.set_backend("odd"))
        tp.set_backend("good")
        report([first, second, added(tp), listed(tp.backends())["odd"]])
    """)
    kind, message, _, _ = seen[0]
    assert kind == error, message
    for text in ("backend 'odd' of tensorplug-odd 1.2.3", *says):
        assert text in message
    assert seen[1:] == [
        seen[0],
        ["float32", [2], [3.0, 7.0], "good"],
        ["tensorplug-odd", "1.2.3", "failed", message],
    ]


NESTED = f"tensorplug>=0.1; {'(' * 5000}python_version >= '3'{')' * 5000}"


def test_a_marker_that_is_nested_too_deeply(site, good, make_backend):
    site.install(good, make_backend("odd", "", requires=(NESTED,)))
    infos, [error, message, _, _] = site.run("""
        import tensorplug as tp
        report([listed(tp.backends()), attempt(lambda: tp.set_backend("odd"))])
    """)
    assert infos["good"] == ["tensorplug-good", "1.2.3", "available", ""]
    assert infos["odd"] == ["tensorplug-odd", "1.2.3", "incompatible", message]
    assert error == "PluginVersionError"
    assert "its requirement on tensorplug cannot be read: " in message
    assert len(message) < 500


REGISTERS = """
import tensorplug as tp
from tensorplug.plugin import specs

taken = lambda a, b: a * 0
tp.register_kernel("Add", "good", taken, override=True)
tp.register_gradient("Add", "a", lambda dy: dy, override=True)
tp.register_decomposition("Square", lambda x: x, override=True)
"""
# In the module, or in the hook that opens the device.
IN_HOOK = "\n@hookimpl\ndef tensorplug_create_backend(device):\n    " + "    ".join(
    line + "\n" for line in (REGISTERS + "FAILS\nreturn Numpy('odd')").splitlines() if line
)


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("source", [REGISTERS + "FAILS\n", IN_HOOK], ids=["import", "hook"])
def test_what_a_failing_plugin_registered_is_undone(source, fails, site, good, make_backend):
    source = source.replace("FAILS", "raise OSError('no driver')" if fails else "pass")
    whole = GOOD_SOURCE.replace("good", "odd")
    site.install(good, make_backend("odd", whole + source))
    seen = site.run("""
        import tensorplug as tp
        from tensorplug.engine.current import current_engine
        tp.set_backend("good")
        registry = current_engine().registry
        def in_force():
            state = registry.state
            return [
                str(state.kernel("Add", "good").owner),
                str(state.gradient("Add", "a").owner),
                str(state.decomposition("Square").owner),
            ]
        before = in_force()
        error = attempt(lambda: tp.set_backend("odd"))[0]
        after = in_force()
        tp.set_backend("good")
        report([error, before == after, added(tp)[2]])
    """)
    assert seen == (
        ["PluginLoadError", True, [3.0, 7.0]] if fails else ["nothing", False, [0.0, 0.0]]
    )


@pytest.mark.parametrize(
    ("closing", "cause"),
    [
        ("raise OSError('busy\\x1b[2J')", r"OSError: busy\x1b[2J"),
        (
            "raise type('Odd', (Exception,), {'__str__': lambda error: 1 // 0})",
            "Odd: <its __str__ raised ZeroDivisionError>",
        ),
    ],
)
def test_a_backend_that_cannot_be_closed(closing, cause, site, good, make_backend):
    source = GOOD_SOURCE.replace("good", "odd").replace("self.closed = True", closing)
    site.install(good, make_backend("odd", source))
    seen = site.run("""
        import tensorplug as tp
        from tensorplug.engine.current import current_engine
        tp.set_backend("odd")
        x = tp.asarray([1.0])
        outcome = attempt(lambda: tp.remove_backend("odd"))
        kept = [key for key in current_engine().registry.state.kernels if "odd" in key]
        tp.set_backend("odd")  # it can be opened again
        report([outcome, kept, x.device, added(tp)])
    """)
    [error, _, _, [[category, message]]], kept, device, result = seen
    assert (error, category) == ("nothing", "BackendWarning")
    assert message == (
        f"backend 'odd' of tensorplug-odd 1.2.3 was removed, but closing it raised {cause}"
    )
    assert (kept, device, result[2:]) == ([], "host", [[3.0, 7.0], "odd"])


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("{'driver': '7\\x1b[2J'}", {"driver": r"7\x1b[2J"}),
        (
            "{'driver': Unprintable()}",
            "raised SystemExit: not even this in tensorplug_diagnostics",
        ),
    ],
)
def test_diagnostics_of_hostile_plugins(returned, expected, site, make_backend):
    hook = f"\n@hookimpl\ndef tensorplug_diagnostics():\n    return {returned}\n"
    source = GOOD_SOURCE.replace("good", "odd") + UNPRINTABLE + hook
    site.install(make_backend("odd", source))
    result, (error, message, _, _) = site.run("""
        from tensorplug.engine.current import current_engine
        found = {}
        source = current_engine().devices.source
        report([found, attempt(lambda: found.update(source.diagnostics("odd")))])
    """)
    if isinstance(expected, dict):
        assert (result, error) == (expected, "nothing")
    else:
        assert error == "PluginLoadError"
        assert "backend 'odd' of tensorplug-odd 1.2.3" in message
        assert expected in message


@pytest.mark.parametrize("returned", ["[Nameless()]", "Nameless()"])
def test_devices_that_cannot_be_shown(returned, site, make_backend):
    source = f"""
class Nameless:
    def __repr__(self):
        raise OSError("no repr")
@hookimpl
def tensorplug_devices():
    return {returned}
"""
    site.install(make_backend("odd", GOOD_SOURCE.replace("good", "odd") + source))
    error, message, _, _ = site.run(
        "import tensorplug as tp; report(attempt(lambda: tp.devices('odd')))"
    )
    assert error == "RegistrationError"
    assert "tensorplug_devices of backend 'odd' of tensorplug-odd 1.2.3 returned " in message
    assert "<its __repr__ raised OSError>" in message


# The group as written, and the group that was meant; None if nothing says that it is ours.
GROUPS = [
    ("tensorplug.backend", "tensorplug.backends"),
    ("tensorplug_backends", "tensorplug.backends"),
    ("Tensorplug.Backends", "tensorplug.backends"),
    ("tensorplug.bakcends", "tensorplug.backends"),
    ("tensorplug.reports", None),
    ("somebody.backends", None),
]


@pytest.mark.parametrize(("group", "meant"), GROUPS)
@pytest.mark.parametrize("name", ["odd", "opencl"])
def test_a_misspelt_group_of_entry_points(group, meant, name, site, make_backend):
    site.install(make_backend(name, GOOD_SOURCE, name="acme-odd", entries={group: {name: "odd"}}))
    listing, [error, message, _, _] = site.run(
        f"""
        import tensorplug as tp
        listing = attempt(tp.backends)[3]
        with warnings.catch_warnings(action="ignore"):
            outcome = attempt(lambda: tp.set_backend({name!r}))
        report([listing, outcome])
        """
        # opencl itself may be installed, for other tests
        .replace("import tensorplug as tp", WITHOUT_OPENCL)
    )
    said = f"acme-odd 1.2.3 has the entry point {name!r} in the group {group!r}, "
    if meant is None:
        assert listing == []
        assert "acme-odd" not in message
        # The package is here for other tests; its metadata is hidden.
        assert (error, "The package tensorplug_opencl is here" in message) == (
            "BackendNotInstalledError",
            name == "opencl",
        )
        return
    [[category, warned]] = listing
    assert category == "PluginWarning"
    assert warned.startswith(said)
    assert warned.endswith(f"did you mean {meant!r}? It is left out")
    assert error == "BackendNotInstalledError"
    assert said in message
    assert meant in message
    assert "pip install" not in message


WITHOUT_OPENCL = """import importlib_metadata
        found = importlib_metadata.distributions
        importlib_metadata.distributions = lambda: [
            one for one in found() if one.metadata["Name"] != "tensorplug-opencl"
        ]
        import tensorplug as tp"""


def test_an_extension_is_no_backend(site, make_extension):
    site.install(make_extension("acme_ops", ""))
    error, message, _, _ = site.run(
        "import tensorplug as tp; report(attempt(lambda: tp.set_backend('acme_ops')))"
    )
    assert error == "BackendNotInstalledError"
    assert "acme-ops 4.5.6 has the entry point 'acme_ops'" in message
    assert "in the group 'tensorplug.extensions'" in message


@pytest.mark.parametrize("other", ["acme-good", "zzz-good"])  # before and after in the alphabet
def test_the_cure_of_a_collision_keeps_the_official_one(other, site, good, make_backend):
    newcomer = make_backend("x", "", name=other, entries={"tensorplug.backends": {"good": "x"}})
    site.install(good, newcomer)
    error, message, _, _ = site.run(
        "import tensorplug as tp; report(attempt(lambda: tp.set_backend('good')))"
    )
    assert error == "PluginCollisionError"
    assert message.endswith(
        f"Uninstall all but one of them, or skip the others: "
        f"TENSORPLUG_DISABLE_PLUGINS={other}:good keeps that of tensorplug-good"
    )
    setting = message.partition("TENSORPLUG_DISABLE_PLUGINS=")[2].partition(" ")[0]
    seen = site.run(
        "import tensorplug as tp; tp.set_backend('good'); report(added(tp))",
        TENSORPLUG_DISABLE_PLUGINS=setting,
    )
    assert seen == ["float32", [2], [3.0, 7.0], "good"]


def test_the_cure_of_a_collision_without_an_official_one(site, make_backend):
    site.install(
        *(
            make_backend("x", "", name=name, entries={"tensorplug.backends": {"odd": "x"}})
            for name in ("b-odd", "c-odd", "a-odd")
        )
    )
    _, message, _, _ = site.run(
        "import tensorplug as tp; report(attempt(lambda: tp.set_backend('odd')))"
    )
    assert message == (
        "backend 'odd' comes from a-odd 1.2.3 and b-odd 1.2.3 and c-odd 1.2.3. Uninstall all but "
        "one of them, or skip the others: "
        "TENSORPLUG_DISABLE_PLUGINS=b-odd:odd,c-odd:odd keeps that of a-odd, "
        "TENSORPLUG_DISABLE_PLUGINS=a-odd:odd,c-odd:odd keeps that of b-odd, "
        "TENSORPLUG_DISABLE_PLUGINS=a-odd:odd,b-odd:odd keeps that of c-odd"
    )


ESCAPES = "1.2.3\x1b[31m"


def test_escapes_in_metadata(site, good, make_backend):
    site.install(good, make_backend("odd", GOOD_SOURCE))
    folder = site.path / "tensorplug_odd-1.2.3.dist-info"
    folder.joinpath("METADATA").write_text(
        "Metadata-Version: 2.1\nName: tensorplug-odd\x1b[2J\n"
        f"Version: {ESCAPES}\nRequires-Dist: tensorplug>99\x1b]0;x\x07\n"
    )
    outcome, infos, refused = site.run("""
        import tensorplug as tp
        found = []
        outcome = attempt(lambda: found.extend(tp.backends()))
        with warnings.catch_warnings(action="ignore"):
            refused = attempt(lambda: tp.set_backend("odd"))
        report([outcome, listed(found), refused])
    """)
    assert infos["good"][2] == "available"
    [[category, message]] = outcome[3]  # no such distribution can be installed: it is left out
    assert category == "PluginWarning"
    assert "odd" not in infos
    assert r"'tensorplug-odd\x1b[2J' cannot be the name of a distribution" in message
    assert refused[0] == "BackendNotInstalledError"
    folder.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: tensorplug-odd\nVersion: {ESCAPES}\n"
        "Requires-Dist: tensorplug>99\x1b]0;x\x07\n"
    )
    infos, refused = site.run("""
        import tensorplug as tp
        report([listed(tp.backends()), attempt(lambda: tp.set_backend("odd"))])
    """)
    assert infos["odd"][:3] == ["tensorplug-odd", r"1.2.3\x1b[31m", "incompatible"]
    for text in (infos["odd"][3], refused[1]):
        assert "\x1b" not in text
        assert "\x07" not in text
        assert r"1.2.3\x1b[31m" in text
