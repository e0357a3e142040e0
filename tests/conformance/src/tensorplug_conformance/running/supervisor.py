"""Supervises workers: a crash or a hang is the verdict on its item only."""

from __future__ import annotations

import itertools
import time
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.reporting.schema import misfit, misfit_introduction
from tensorplug_conformance.running.comparing import is_outside
from tensorplug_conformance.running.peer import Peer, PeerLostError
from tensorplug_conformance.running.process import StrangeError, WorkerProcess
from tensorplug_conformance.verdicts import Item, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tensorplug_conformance.checks import Target

Numbered = tuple[int, Item]
_POLL: Final = 0.02  # seconds
_START: Final = 60.0  # seconds until a process reports, whatever the limit of an item
_IN_HAND: Final = 4  # items: a worker need not wait for the supervisor's next look
_BEHIND: Final = 8  # items whose results are not compared yet
_NEVER: Final = "not run: the time limit of the level ran out, or no worker starts"
_STRANGE: Final = "it damaged the file of its events: "


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for one item. That decides how long all the items of a level may take.

    A device compiler on a busy machine takes minutes for a row, but most rows take less than a
    second: a level has six times an item's limit and a sixtieth of it for each item, that is
    half an hour and 5 s an item.
    """

    item: float = 300.0

    @property
    def opening(self) -> float:
        """The limit of a process before its first item."""
        return max(self.item, _START)

    def level(self, items: int) -> float:
        """Return the limit of a level of so many items."""
        return self.item * (6 + items / 60)


class Attendant:
    """One worker process, the items it holds, and how long it has been silent."""

    def __init__(
        self,
        target: Target,
        seed: int,
        limits: Limits,
        introduced: Callable[[dict[str, Any]], None] | None = None,
        peers: list[Peer] | None = None,
    ) -> None:
        self._seed = seed
        self._peers = [] if peers is None else peers  # idle ones, which other workers have left
        self._peer: Peer | None = None
        self._compared: deque[Numbered] = deque()  # what the peer has been sent
        limited = replace(target, limit=limits.item)
        self._process = WorkerProcess(limited, seed, introduce=introduced is not None)
        self._introduced = introduced
        self._limits = limits
        self._busy = False
        self._since = time.monotonic()
        self.in_hand: deque[Numbered] = deque()
        self.later: list[Numbered] = []  # what it does when nothing waits any more
        self.over = False
        self.began = False  # anything at all

    def give(self, items: Iterable[Numbered]) -> None:
        """Hand over items, to be run after those it holds."""
        listed = list(items)
        if not self.in_hand:
            self._since = time.monotonic()
        self.in_hand.extend(listed)
        self._process.feed(listed)

    @property
    def behind(self) -> int:
        """How many items have results that are not compared yet."""
        return len(self._compared)

    def _compare(self, number: int, item: Item, event: Mapping[str, Any]) -> None:
        """Have a row's results compared by a process that never imports the plugin."""
        if self._peer is None:
            start = "tensorplug_conformance.running.comparing", [str(self._seed)]
            self._peer = self._peers.pop() if self._peers else Peer(*start)
        path = str(self._process.told(number))
        self._peer.send((item, event["verdict"], event.get("zeros", ()), path))
        self._compared.append((number, item))

    def compared(self, *, wait: bool = False) -> list[tuple[int, Outcome]]:
        """Return the outcomes of rows that were compared since the last call; ``wait``: of all."""
        outcomes = []
        while self._peer and self._compared and (wait or self._peer.has_answered()):
            number, item = self._compared.popleft()
            try:
                outcomes.append((number, Outcome(item, self._peer.receive(self._limits.item))))
            except PeerLostError as error:
                outcomes.append((number, Outcome(item, None, f"its comparison failed: {error}")))
        return outcomes

    def finished(self) -> list[tuple[int, Outcome]]:
        """Return the outcomes since the last call.

        Once ``over``, the process is gone, and the items that it still holds were not begun.
        """
        self.over = self._process.ended()  # asked before reading, so that nothing said is lost
        outcomes = self.compared()
        try:
            for event in self._process.heard():
                outcomes += self._heard(event)
            self._process.check()
        except StrangeError as error:
            self.over = True
            return [*outcomes, *self._closed(None, f"{error}{self._process.during()}")]
        silent = time.monotonic() - self._since
        if self.over:
            outcomes += self._ended(self._process.epitaph())
        elif self.in_hand and silent > self._patience():
            self.over = True
            hung = f"it hung: it did not end within {silent:.0f} s"
            outcomes += self._ended(hung + self._process.during())
        return outcomes

    def _patience(self) -> float:
        return self._limits.item if self.began else self._limits.opening

    def expired(self) -> list[tuple[int, Outcome]]:
        """Return outcomes for items that ran out of time."""
        self.over = True
        late = "it had not ended when the time limit of the level ran out"
        return self._ended(late + self._process.during())

    def _ended(self, why: str) -> list[tuple[int, Outcome]]:
        """Close the running item; if the process did not get that far, the first one."""
        return self._closed(None, why) if self._busy or not self.began else []

    def _heard(self, event: dict[str, Any]) -> list[tuple[int, Outcome]]:
        self.began, self._since = True, time.monotonic()
        match event["event"]:
            case "begin":
                self._busy = event.get("item") is not None
                if self._busy:
                    self._check_turn(event)
            case "backend" if self._introduced is not None:
                self._introduced(_introduction(event))
            case "done" | "broken":
                self._check_turn(event)
                number, item = self.in_hand[0]
                verdict, error = _verdict(item, event)
                if verdict is not None and is_outside(item):
                    self._busy = False
                    self.in_hand.popleft()
                    self._compare(number, item, event)
                    return []
                return self._closed(verdict, error)
        return []

    def _check_turn(self, event: dict[str, Any]) -> None:
        """Raise an error if an event is of another item than the one whose turn it is."""
        if not self.in_hand or event.get("item") != self.in_hand[0][0]:
            raise StrangeError(f"{_STRANGE}an event of item {event.get('item')!r:.40}")

    def _closed(self, verdict: dict[str, Any] | None, error: str) -> list[tuple[int, Outcome]]:
        """Remove the first item, if there is one."""
        self._busy = False
        if not self.in_hand:
            return []
        number, item = self.in_hand.popleft()
        return [(number, Outcome(item, verdict, error))]

    def dismiss(self) -> None:
        """Close its input, so that the process ends by itself."""
        self._process.dismiss()

    def leave(self) -> None:
        """Wait for that end for a limited time."""
        self._process.leave()

    def stop(self) -> None:
        """Kill the process; leave the one that compares to others, if nothing waits for it."""
        self._process.stop()
        if self._peer is not None and self._compared:
            self._peer.stop()
        elif self._peer is not None:
            self._peers.append(self._peer)
        self._peer = None


def _introduction(event: dict[str, Any]) -> dict[str, Any]:
    """Return what the backend says of itself, or why it does not open."""
    said = event.get("backend")
    introduction = (
        said if isinstance(said, dict) and said else {"error": str(event.get("error", ""))}
    )
    fault = misfit_introduction(introduction)
    if fault:
        raise StrangeError(f"{_STRANGE}what the backend says of itself: {fault}")
    return introduction


def _verdict(item: Item, event: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the verdict that an event tells, or None and why there is none."""
    if event["event"] == "broken":
        return None, str(event.get("error", ""))
    verdict = event.get("verdict")
    fault = misfit(item, verdict)
    if fault:
        raise StrangeError(f"{_STRANGE}no verdict: {fault}")
    return verdict, ""


def supervise(
    target: Target,
    items: Iterable[Item],
    seed: int,
    limits: Limits,
    heard: Callable[[Outcome], None],
    introduced: Callable[[dict[str, Any]], None] | None = None,
    jobs: int = 1,
    series: Mapping[Item, str] = MappingProxyType({}),
) -> list[Outcome]:
    """Run ``items`` on ``target``, in ``jobs`` processes; return one outcome for each, in order.

    ``heard`` is called with each outcome as it comes; ``introduced`` with what the backend
    says of itself, or with an ``error``. Items of one of the ``series`` run in one process: the
    first of them is among the first that begin, the others run there when nothing else waits.
    """
    return _Queue(target, list(items), seed, limits, heard, introduced, series).work_off(jobs)


class _Queue:
    """The waiting items, and the workers that take them."""

    def __init__(
        self,
        target: Target,
        items: list[Item],
        seed: int,
        limits: Limits,
        heard: Callable[[Outcome], None],
        introduced: Callable[[dict[str, Any]], None] | None,
        series: Mapping[Item, str],
    ) -> None:
        self._items = items
        self._waiting, self._later = _arranged(items, series)
        self._outcomes: dict[int, Outcome] = {}
        self._attendants: list[Attendant] = []
        self._leaving: list[Attendant] = []
        self._peers: list[Peer] = []
        self._start = partial(Attendant, target, seed, limits, peers=self._peers)
        self._starts = True
        self._never = _NEVER
        self._heard = heard
        self._introduced = introduced
        self._deadline = time.monotonic() + limits.level(len(items))

    def work_off(self, jobs: int) -> list[Outcome]:
        try:
            while self._staffed(jobs) and time.monotonic() < self._deadline:
                for attendant in list(self._attendants):
                    self._attend(attendant, jobs)
                time.sleep(_POLL)
            for attendant in self._attendants:
                self._close(attendant.compared(wait=True))
                self._close(attendant.expired())
            for entry in self._leaving:
                entry.leave()
        finally:
            for attendant in (*self._attendants, *self._leaving):
                attendant.stop()
            for peer in self._peers:
                peer.stop()
        for number, item in enumerate(self._items):
            if number not in self._outcomes:
                self._close([(number, Outcome(item, None, self._never))])
        return [self._outcomes[number] for number in range(len(self._items))]

    def _staffed(self, jobs: int) -> bool:
        """Start workers while items wait; return whether any is working."""
        while self._starts and self._waiting and len(self._attendants) < jobs:
            try:
                self._attendants.append(self._start(introduced=self._introduced))
            except OSError as error:  # such as a full disk
                self._starts, self._never = False, f"not run: no worker starts: {error}"
                break
            self._introduced = None  # once is enough
            self._hand(self._attendants[-1])
        return bool(self._attendants)

    def _hand(self, one: Attendant) -> None:
        """Give a worker what waits, and remember what it has to do for that later."""
        group = self._waiting.popleft()
        one.later += self._later.pop(group[0][0], [])
        one.give(group)

    def _attend(self, one: Attendant, jobs: int) -> None:
        self._close(one.finished())
        if one.over:
            self._close(one.compared(wait=True))
            self._attendants.remove(one)
            one.stop()
            if one.in_hand:
                self._waiting.appendleft(list(one.in_hand))
            if one.later:
                self._waiting.append(one.later)
            # It ended before its first item, and so would the next one.
            self._starts = self._starts and one.began
            return
        # Towards the end no worker should hold what another could begin.
        enough = _IN_HAND if len(self._waiting) > _IN_HAND * jobs else 1
        while self._waiting and len(one.in_hand) < enough and one.behind < _BEHIND:
            self._hand(one)
        if one.later and not self._waiting:
            one.give(one.later)
            one.later = []
        if not (one.in_hand or one.behind):
            self._attendants.remove(one)
            self._leaving.append(one)
            one.dismiss()

    def _close(self, ended: list[tuple[int, Outcome]]) -> None:
        for number, outcome in ended:
            self._outcomes[number] = outcome
            self._heard(outcome)


def _arranged(
    items: list[Item], series: Mapping[Item, str]
) -> tuple[deque[list[Numbered]], dict[int, list[Numbered]]]:
    """Return the items that wait, numbered, and what follows later on the first of a series.

    Rows of one kernel and dtype are together: they have the same cases, and one worker computes
    the expected outputs once.
    """
    numbered = list(enumerate(items))
    chains: dict[str, list[Numbered]] = {}
    for number, item in numbered:
        if item in series:
            chains.setdefault(series[item], []).append((number, item))

    def what(one: Numbered) -> Item:
        number, item = one
        return item[:3] if item[0] == "row" else (number,)

    others = (one for one in numbered if one[1] not in series)
    waiting = deque([first] for first, *_ in chains.values())
    waiting.extend(list(some) for _, some in itertools.groupby(others, what))
    return waiting, {first[0]: later for first, *later in chains.values()}
