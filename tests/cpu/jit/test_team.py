"""The team of threads: when it helps, when it sleeps, and that nothing it meets can harm it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from queue import SimpleQueue

import pytest

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen import compiler
from tensorplug_cpu.jit.groups import team as teams

pytestmark = pytest.mark.skipif(not compiler.is_available(), reason="llvmlite is not installed")

SECONDS = 60
PATIENCE = 1 << 40  # turns
OWNER, NUMBER, ALONE, INSIDE = 1, 2, 3, 16  # words of the record
# Each thread that runs it counts itself, and waits until as many as asked for are there.
MEETING = """
define void @run(ptr %block) {
entry:
  %here = atomicrmw add ptr %block, i64 1 seq_cst
  %field = getelementptr i64, ptr %block, i64 1
  %wanted = load i64, ptr %field
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %next, %look ]
  %next = add i64 %turn, 1
  %there = load atomic i64, ptr %block seq_cst, align 8
  %enough = icmp uge i64 %there, %wanted
  %late = icmp ugt i64 %turn, 200000000
  %end = or i1 %enough, %late
  br i1 %end, label %done, label %look
done:
  ret void
}
"""


@pytest.fixture
def team():
    return teams.Team()


@pytest.fixture(scope="module")
def kernel():
    return compiler.compile_function(MEETING, "run", [ctypes.c_void_p])


def meet(team, kernel, wanted):
    """Return how many threads ran a kernel that waits for so many."""
    block = (ctypes.c_int64 * 2)(0, wanted)
    team.begin()(team.address, kernel, block, PATIENCE)
    return block[0]


def helped(team, kernel, wanted):
    """Return whether so many threads meet; one that falls asleep meanwhile is woken again."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        team.ask(teams.LONG_WORK)
        if meet(team, kernel, wanted) == wanted:
            return True
    return False


def sleeps(team):
    end = time.monotonic() + SECONDS
    while team.record[teams.AWAKE] and time.monotonic() < end:
        time.sleep(0.001)
    return not team.record[teams.AWAKE]


@pytest.mark.parametrize("count", [1, 3])
def test_all_threads_help(team, kernel, count):
    team.have(count)
    for _ in range(3):
        assert helped(team, kernel, count + 1)


def test_a_short_kernel_wakes_threads_only_in_a_series(team, monkeypatch):
    woken, now = [], [10**9]
    monkeypatch.setattr(teams, "perf_counter_ns", lambda: now[0])
    team.have(1)
    team._unused.clear()
    for later, work in [(0, 1), (10**6, 1), (10**3, 1), (10**9, teams.LONG_WORK), (10**9, 1)]:
        now[0] += later
        team.ask(work)
        woken.append(not team._beds[0].empty())
        team._beds[0] = SimpleQueue()
    assert woken == [False, False, True, True, False]


def test_threads_sleep_soon_after_the_last_kernel(team, kernel):
    team.have(2)
    assert helped(team, kernel, 3)
    assert sleeps(team)


def test_one_thread_is_no_team(team, kernel, monkeypatch):
    monkeypatch.setattr(parallel, "thread_count", lambda: 1)
    team.forget()
    before = threading.active_count()
    team.ask(teams.LONG_WORK)
    assert meet(team, kernel, 1) == 1
    assert threading.active_count() == before


def test_a_kernel_beside_another_one_runs_alone(team, kernel):
    team.have(1)
    team.begin()
    team.record[OWNER] = 1  # another thread's kernel runs
    team.ask(teams.LONG_WORK)
    assert meet(team, kernel, 1) == 1
    assert (team.record[OWNER], team.record[NUMBER]) == (1, 0)


def test_a_thread_that_lost_its_core_is_not_asked_for_a_while(team, kernel):
    """The loss is paid back by kernels that run alone."""
    team.have(0)
    begin = team.begin()
    team.record[INSIDE] = 1  # a thread is inside, and does not come out
    first = threading.Timer(0.2, lambda: team.record.__setitem__(INSIDE, 0))
    first.start()
    block = (ctypes.c_int64 * 2)(0, 1)
    begin(team.address, kernel, block, 1)
    first.join()
    alone = team.record[ALONE]
    assert alone > 100
    begin(team.address, kernel, block, 1)
    assert team.record[ALONE] == alone - 1
    team.have(1)
    team.record[ALONE] = 1
    team.ask(teams.LONG_WORK)
    assert team._beds[0].empty()


def test_programs_of_several_threads(team, kernel):
    team.have(1)
    found = []

    def work():
        for _ in range(300):
            team.ask(teams.LONG_WORK)
            found.append(meet(team, kernel, 1))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(SECONDS)
    assert len(found) == 1200
    assert set(found) <= {1, 2}
    assert (team.record[OWNER], team.record[INSIDE]) == (0, 0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_signals_leave_the_team_in_order(team, kernel):
    class RungError(Exception):
        pass

    armed = []

    def ring(*_):
        if armed:
            armed.clear()
            raise RungError

    team.have(1)
    assert helped(team, kernel, 2)
    rung, before = 0, signal.signal(signal.SIGALRM, ring)
    end = time.monotonic() + SECONDS
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while rung < 20 and time.monotonic() < end:
        try:
            armed.append(True)
            team.ask(teams.LONG_WORK)
            meet(team, kernel, 1)
            armed.clear()
        except RungError:
            rung += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    assert rung
    assert helped(team, kernel, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads is the point
def test_a_forked_child_has_threads_of_its_own(kernel, monkeypatch):
    own = teams.team
    monkeypatch.setattr(parallel, "thread_count", lambda: 2)
    own.forget()
    try:
        assert helped(own, kernel, 2)
        own.record[OWNER] = 1  # as another thread's kernel runs, which the child does not have
        child = os.fork()
        if not child:
            signal.alarm(SECONDS)
            os._exit(not helped(own, kernel, 2))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    finally:
        monkeypatch.undo()
        own.forget()


ENDING = """
import numpy as np, tensorplug as tp
tp.set_backend("cpu")
x, w = tp.ones((1, 2048)), tp.ones((2048, 2048))
f = tp.compile(lambda x: (x @ w) @ w * 0.5)
for _ in range(20):
    y = f(x)
print(float(y[0, 0]))
"""


def test_a_program_ends_while_threads_are_awake():
    run = [sys.executable, "-c", ENDING]
    done = subprocess.run(run, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{2048.0**2 / 2}\n", "")
