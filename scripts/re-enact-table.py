#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How far the model agrees with recorded traces that it re-enacts, as rows of a table.

    scripts/re-enact-table.py BLKLAB SHARED [FOLDER/TRACE…]

Of every trace in SHARED/truth*/traces with a case, and of SHARED/data/oracle with a context, it asks
`BLKLAB why --output-format json` and prints the dispatches in the recorded order, those within 100 us
of the recorded time, and where the two part first. 99 % in order are the mark.
"""

import json
import subprocess
import sys
from pathlib import Path

MARK = 99.0
NUMBER = "dispatches"


def traces(shared):
    """Name, trace and context of all that are there."""
    for folder in sorted(shared.glob("truth*")):
        for trace in sorted((folder / "traces").glob("*.blktrace.0.zst")):
            name = trace.name.removesuffix(".blktrace.0.zst")
            case = folder / "cases" / f"{name}.toml"
            if case.is_file():
                yield f"{folder.name}/{name}", trace, case
    for folder in sorted((shared / "data/oracle").iterdir()):
        context = folder / "context.txt"
        for trace in sorted(folder.glob("trace.*.zst")):
            if context.is_file():
                yield f"oracle/{folder.name}", trace, context


def row(blklab, name, trace, context):
    """The row of a trace, and whether it is below the mark."""
    args = [blklab, "why", "--output-format", "json", trace, "--context", context]
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode != 0:
        return f"| `{name}` | - | - | - | {done.stderr.strip()} |", True
    answer = json.loads(done.stdout)
    again = answer.get("re_enacted")
    if again is None:
        return f"| `{name}` | - | - | - | {answer['not_re_enacted']} |", True
    a = again["agreement"]
    of = max(a["dispatches"], a["dispatches_of_model"], 1)
    order, time = 100 * a["in_order"] / of, 100 * a["in_time"] / of
    parts = ""
    if order < MARK and (first := a["first_difference"]) is not None:
        parts = f"after {a['prefix']}: recorded {first['recorded']}, model {first['model']}"
    cells = f"{a[NUMBER]} | {order:.1f} | {time:.1f} | {parts}"
    return f"| `{name}` | {cells} |", order < MARK


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    blklab, shared, wanted = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    print("| trace | dispatches | in order, % | in time, % | where they part |")
    print("|---|---|---|---|---|")
    nr = below = 0
    for name, trace, context in traces(shared):
        if wanted and name not in wanted:
            continue
        text, is_below = row(blklab, name, trace, context)
        print(text, flush=True)
        nr, below = nr + 1, below + is_below
    print(f"\n{nr - below} of {nr} traces have {MARK:.0f} % or more in the recorded order.")


if __name__ == "__main__":
    main()
