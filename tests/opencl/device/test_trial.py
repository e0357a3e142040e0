"""Drivers are tried in a separate process; their failures limit their use."""

from __future__ import annotations

import json

import pytest
from tests.opencl.device.conftest import ALL, MORE, fake, judge

from tensorplug.errors import SettingsError
from tensorplug_opencl.machine import attempts, cache_folder, identity, settings
from tensorplug_opencl.machine.limits import NONE as NO_LIMITS
from tensorplug_opencl.machine.limits import Limits
from tensorplug_opencl.trial import checks, parent, process, stages, vector_checks, verdict

RECORD = {"state": "sound", "limits": NO_LIMITS._asdict(), "findings": [], "finished": True}


def anew(monkeypatch):
    """Act as another process, which knows only the files on disk."""
    monkeypatch.setattr(parent, "_known", {})
    monkeypatch.setattr(parent, "_children", {})
    monkeypatch.setattr(parent, "_forgot", False)


# The verdict ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "state", "limits"),
    [
        ({}, "sound", NO_LIMITS),
        ({"float64": "1 is 2"}, "limited", Limits(float64=False)),
        ({"float16": "SIGSEGV"}, "limited", Limits(float16=False)),
        ({"64-bit_atomics": "exits"}, "limited", Limits(atomics64=False)),
        ({"long_loops": "wrong"}, "limited", Limits(long_loops=False)),
        ({"shared_memory": "SIGSEGV"}, "limited", Limits(shared_memory=False)),
        (
            {"binaries": "SIGSEGV", "float16": "SIGSEGV"},
            "limited",
            Limits(float16=False, binaries=False),
        ),
        (
            {"vectors_of_64_bytes": "SIGSEGV", "vectors_of_32_bytes": ""},
            "limited",
            Limits(vector_bytes=32),
        ),
        (
            {
                "vectors_of_64_bytes": "wrong",
                "vectors_of_32_bytes": "SIGSEGV",
                "vectors_of_16_bytes": "",
            },
            "limited",
            Limits(vector_bytes=16),
        ),
        ({"floats": "1 + 1 is 3"}, "unsound", NO_LIMITS),
        (
            {
                "vectors_of_64_bytes": "wrong",
                "vectors_of_32_bytes": "wrong",
                "vectors_of_16_bytes": "SIGSEGV",
            },
            "unsound",
            NO_LIMITS,
        ),
    ],
)
def test_failures_limit_use(child, told, state, limits):
    runs = child(**told)
    actual = judge(fake())
    assert (actual.state, actual.limits) == (state, limits)
    wrong = {name.replace("_", " "): what for name, what in told.items() if what}
    assert [finding.partition(":")[0] for finding in actual.findings] == [
        name for name in (*ALL, *MORE) if name in wrong
    ]
    crashes = sum(what in ("SIGSEGV", "exits") for what in wrong.values())
    # Each crash takes another child, except the last one of a hopeless device.
    hopeless = bool(crashes and state == "unsound")
    assert len(runs()) == 1 + any(run["rest"] for run in runs()) + crashes - hopeless


@pytest.mark.parametrize(
    ("what", "finding"),
    [
        ("SIGSEGV", "floats: the process died of SIGSEGV"),
        ("exits", "floats: the process ended with exit status 1"),
        ("5 is 6", "floats: 5 is 6"),
    ],
)
def test_how_it_ended_is_said(child, what, finding):
    child(floats=what)
    assert parent.find_verdicts([fake()])[0].findings == (finding,)


def test_a_driver_that_hangs_is_not_waited_for(monkeypatch, child):
    child(float64="hangs")
    parent.find_verdicts([fake()])
    monkeypatch.setattr(parent, "SECONDS", 1.0)
    actual = judge(fake())
    assert actual.limits == Limits(float64=False)
    assert actual.findings == ("float64: it did not end within 1 s",)


# What is remembered -----------------------------------------------------------------------------


def test_a_device_is_tried_once(monkeypatch, child):
    runs = child(shared_memory="1 is 2")
    first = parent.find_verdicts([fake(), fake()])  # two that are alike: one trial
    assert len(runs()) == 1
    assert parent.find_verdicts([fake()]) == first[:1]
    anew(monkeypatch)
    assert parent.find_verdicts([fake()]) == first[:1]
    assert len(runs()) == 1
    parent.find_verdicts([fake("Other GPU")])
    assert len(runs()) == 2


@pytest.mark.parametrize("change", ["driver", "processor", "ours"])
def test_changes_cause_a_new_trial(monkeypatch, child, change):
    runs = child()
    parent.find_verdicts([fake()])
    anew(monkeypatch)
    other = fake()
    if change == "driver":
        other.driver_version = "1.3"
    elif change == "processor":
        monkeypatch.setattr(identity.processor, "compute_digest", lambda: "another")
    else:
        monkeypatch.setattr(identity, "find_version", lambda: "9.9")
    parent.find_verdicts([other])
    assert len(runs()) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"state": "sound"}',
        *(
            json.dumps({**RECORD, **wrong}).encode()
            for wrong in (
                {"state": "perfect"},
                {"limits": {"vector_bytes": 64}},
                {"limits": {**NO_LIMITS._asdict(), "vector_bytes": "64"}},
                {"findings": None},
                {"finished": "yes"},
            )
        ),
        b"[" * 100_000,
    ],
)
def test_a_file_that_says_something_else_is_not_believed(monkeypatch, child, folder, content):
    runs = child()
    parent.find_verdicts([fake()])
    (file,) = folder.iterdir()
    file.write_bytes(content)
    anew(monkeypatch)
    assert parent.find_verdicts([fake()])[0].state == "sound"
    assert len(runs()) == 2


def test_a_trial_that_ends_its_process_is_made_again_once(monkeypatch, child, folder):
    """As when a GPU takes the machine down: the second time, that is the verdict."""
    runs = child()
    key = verdict.make_key(fake())
    for number, state in ((1, "sound"), (2, "unsound")):
        told = json.dumps({"number": str(number)}).encode()
        cache_folder.write(folder / f"trial-{key}.attempt", told)
        (actual,) = parent.find_verdicts([fake()])
        assert actual.state == state
        verdict.forget()
        anew(monkeypatch)
    assert len(runs()) == 1
    assert "twice" in actual.findings[0]


def test_an_interrupted_trial_says_nothing(monkeypatch, child, folder):
    child()

    def interrupt(_child, _request, _seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(process.Child, "ask", interrupt)
        with pytest.raises(KeyboardInterrupt):
            parent.find_verdicts([fake()])
    assert not list(folder.glob("*"))
    assert parent.find_verdicts([fake()])[0].state == "sound"


# What the user can say --------------------------------------------------------------------------


def test_never(monkeypatch, child, folder):
    runs = child(floats="wrong")
    monkeypatch.setenv(settings.TRIAL, "0")
    assert parent.find_verdicts([fake()]) == [verdict.UNTRIED]
    assert not runs()


def test_again(monkeypatch, child, folder):
    runs = child(floats="wrong")
    assert not parent.find_verdicts([fake()])[0].usable
    with attempts.attempting("what is under way"):
        cache_folder.write(folder / "crashed.attempt", b"{}")
        anew(monkeypatch)
        child()
        monkeypatch.setenv(settings.TRIAL, "again")
        for _ in range(2):
            assert parent.find_verdicts([fake()])[0].state == "sound"
        assert len(runs()) == 1  # once in a process
        assert [path.name for path in folder.glob("*.attempt")] == ["what is under way.attempt"]


@pytest.mark.parametrize("value", ["yes", "2", "never"])
def test_a_setting_that_is_none(monkeypatch, value):
    monkeypatch.setenv(settings.TRIAL, value)
    with pytest.raises(SettingsError, match=f"{settings.TRIAL}='{value}'"):
        settings.read_trial()


# The real child ---------------------------------------------------------------------------------

LYING = """
from tensorplug_opencl.trial import child
real = child._Tried._run

def run(self, program, check, shared):
    made = real(self, program, check, shared=shared)
    if check.kernel == {kernel!r} and made.size > {least}:
        made.reshape(-1)[-1] += 1
    return made

child._Tried._run = run
child.main()
"""


def test_the_device_of_the_tests_is_tried(folder, target):
    (actual,) = parent.find_verdicts([target])
    assert actual.usable, actual
    (file,) = folder.glob("*.verdict.json")
    assert json.loads(file.read_text())["device"] == identity.read_facts(target)


def test_files_of_the_user_take_no_modules_place(folder, target, tmp_path, monkeypatch):
    """This process has imported the right modules; its current folder has others."""
    for name in ("json", "types", "queue", "numpy", "pyopencl", "tensorplug_opencl"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('wrong')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    (actual,) = parent.find_verdicts([target])
    assert actual.usable, actual


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("fold_float", "unsound"),  # vectors of all lengths
        ("fold_int", "unsound"),
        ("wide_atomics", "limited"),
    ],
)
def test_one_wrong_number_is_found(monkeypatch, folder, target, kernel, expected):
    monkeypatch.setattr(parent, "_CODE", LYING.format(kernel=kernel, least=0))
    actual = judge(target)
    assert actual.state == expected
    assert f"{kernel}: number" in actual.findings[-1]


def test_wrong_numbers_of_long_vectors_cost_long_vectors(monkeypatch, folder, target):
    before = parent.find_verdicts([target])[0].limits.vector_bytes
    if before < 32:
        pytest.skip("this driver has no longer vectors")
    anew(monkeypatch)
    verdict.forget()
    outputs = 8 * before // 4  # of a work-item: of eight functions
    monkeypatch.setattr(
        parent, "_CODE", LYING.format(kernel="functions_float", least=checks.ITEMS * outputs - 1)
    )
    actual = judge(target)
    assert (actual.state, actual.limits.vector_bytes) == ("limited", before // 2)


@pytest.mark.parametrize("nbytes", stages.VECTORS)
@pytest.mark.parametrize("double", [False, True])
def test_every_check_fails_for_one_wrong_number(nbytes, double):
    parts = [
        checks.wide_atomics(),
        checks.halves(),
    ]
    for _, actual in [
        *parts,
        checks.loops(),
        vector_checks.check_folds("float", "f4", nbytes),
        vector_checks.check_vectors(nbytes, double=double),
    ]:
        for check in actual:
            right = check.expected
            assert not check.explain_mismatch(right.copy())
            for at in (0, right.size // 2, right.size - 1):
                wrong = right.copy()
                wrong[at] = 0 if right[at] else 1
                assert f"number {at} " in check.explain_mismatch(wrong)
