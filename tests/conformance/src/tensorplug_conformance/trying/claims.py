"""What a kernel's registration claims, and whether the kernel ever runs.

A registration that lists dtypes claims each of them. One that lists none claims the kernel, in
dtypes that its preparation decides. A kernel may decline single calls, which are then
decomposed, but not all that it claims. A dtype that the device does not declare is not claimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.denominator import Row, cases_of

if TYPE_CHECKING:
    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.session import Session


def claimed(session: Session, kernel: str, dtype: DType) -> bool:
    """Return whether the backend registers a kernel that may be native in ``dtype``."""
    registration = session.registration(kernel)
    return registration is not None and (
        registration.dtypes is None or dtype in registration.dtypes
    )


def in_vain(session: Session, entry: CaseEntry, row: Row, seed: int) -> str:
    """Return what a kernel that declined all cases of ``row`` claims and never runs.

    Empty if the claim is for no dtype in particular, and some case of another one would run
    natively; that is asked of its preparation, and nothing is run.
    """
    name, backend = row.kernel, session.device.backend_name
    registration = session.registration(name)
    if registration is not None and registration.dtypes is not None:
        return f"backend {backend!r} claims {name} in {row.dtype} and never runs it"
    others = [Row(name, dtype.name, "native") for dtype in entry.dtypes if dtype.name != row.dtype]
    if any(_runs(session, entry, other, seed) for other in others):
        return ""
    return f"backend {backend!r} claims {name} and never runs it, in any dtype"


def _runs(session: Session, entry: CaseEntry, row: Row, seed: int) -> bool:
    """Return whether some case of ``row`` would run natively."""
    if dt.of(row.dtype) not in session.device.backend.dtypes:
        return False
    cases = cases_of(entry, row, seed)
    return any(_native(session, entry, case) for case in cases)


def _native(session: Session, entry: CaseEntry, case: Case) -> bool:
    if case.refused:
        return False
    try:
        how, _ = session.how(entry.spec, case)
    except Exception:  # noqa: BLE001  # whatever it is, the row of that case says so
        return False
    return how == "native"
