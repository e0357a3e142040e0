"""Calls that run ahead in threads or processes, with results in the order of the calls."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from concurrent.futures import Executor, Future


def ordered(
    pool: Executor, calls: Iterable[tuple[Callable[..., Any], Any]], ahead: int
) -> Generator[Any]:
    """Yield the result of each call, while the next ``ahead`` calls run in ``pool``.

    An error of a call is raised in the place of its result. At the end, or when the generator is
    closed, the pool has no thread or process left.
    """
    waiting: deque[Future[Any]] = deque()
    try:
        for function, argument in calls:
            waiting.append(pool.submit(function, argument))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
