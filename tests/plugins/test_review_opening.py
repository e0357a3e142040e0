"""Opening a backend once more after it was interrupted."""

from __future__ import annotations

import pytest

EXTENSION = """
from tensorplug.plugin import hookimpl
times = []

@hookimpl
def tensorplug_kernels(backend):
    times.append(backend)
    if len(times) == 1:
        {interruption}
    return ()
"""


@pytest.mark.parametrize(
    ("interruption", "raised"),
    [("raise OSError", "PluginWarning"), ("raise KeyboardInterrupt", "KeyboardInterrupt")],
)
def test_backend_opens_after_an_interrupt(interruption, raised, site, good, make_extension):
    """An interrupt, or a warning made an error, comes after the backend's own rules are taken."""
    site.install(good, make_extension("acme_ops", EXTENSION.format(interruption=interruption)))
    seen = site.run("""
        import tensorplug as tp
        first = None
        try:
            tp.set_backend("good")  # warnings are errors here
        except BaseException as error:
            first = type(error).__name__
        import acme_ops
        tp.set_backend("good")
        report({"first": first, "closed": acme_ops.times[0].closed, "second": added(tp)})
    """)
    assert seen == {
        "first": raised,
        "closed": True,
        "second": ["float32", [2], [3.0, 7.0], "good"],
    }
