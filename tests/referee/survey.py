"""Every case of native kernels once, in one process: a quick look before rows are certified.

``python -m tests.referee.survey BACKEND [KERNELS [DTYPES]]``, lists with commas, prints a line of
JSON for each case that fails. A row of ``tensorplug-conformance run`` makes some 50 calls where
this makes five: in other layouts, from threads, on other values before.
"""

from __future__ import annotations

import json
import sys
from fnmatch import fnmatch

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.denominator import cases_of, entries, rows
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.claims import claimed
from tensorplug_conformance.trying.rows import run_case


def main(backend: str, kernels: str = "*", dtypes: str = "*") -> None:
    """Run the cases, and print what fails."""
    known = entries(extension_tables())
    session = Session(engine_factory(None), backend)
    with session.entered():
        for row in rows(3, known):
            wanted = any(fnmatch(row.kernel, each) for each in kernels.split(","))
            wanted = wanted and any(fnmatch(row.dtype, each) for each in dtypes.split(","))
            if not wanted or row.mode != "native" or session.registration(row.kernel) is None:
                continue
            dtype = dt.of(row.dtype)
            if dtype not in session.device.backend.dtypes:
                continue
            if not claimed(session, row.kernel, dtype):
                continue
            entry = known[row.kernel]
            for case in cases_of(entry, row, 0):
                failure = run_case(session, entry, row, case, aftermath=False)
                if failure is not None and not failure.message.startswith("missing"):
                    told = {"kernel": row.kernel, "dtype": row.dtype, "case": case.id}
                    told |= {"message": failure.message, "given": str(case.attributes)}
                    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
