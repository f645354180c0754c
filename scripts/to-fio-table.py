#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How near the jobs come that `blklab trace to-fio` makes of recorded traces.

Prints a row for each trace of measured cases (`../shared/truth*`): latencies (Q2C of all bios) in the
simulation over those of the trace, of the job that was inferred; where it is more than 20 % off, also of
the job that was recorded, which shows what of it is the model's.

    scripts/to-fio-table.py [BLKLAB] [NAME...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("BLKLAB_SHARED", ROOT.parent / "shared"))
SUFFIX = ".blktrace.0.zst"
FIGURES = ["all, p50", "all, p99", "all, max"]
PERCENTILES = [50.0, 99.0]
NEAR = (0.8, 1.2)


def output(*command):
    """What a command prints; its last words are those of this program, if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.strip() or f"{command[0]} failed")
    return done.stdout


def inferred(blklab, trace, case):
    """p50, p99 and max of the inferred job over those of the trace."""
    text = output(blklab, "trace", "to-fio", trace, "--stack", case, "--format", "json")
    rows = json.loads(text)["compared"]
    found = {row["name"]: row["ratio"] for row in rows if row["group"] == "latency"}
    return [found[name] for name in FIGURES]


def latencies(blklab, trace):
    """p50, p99 and max of a trace."""
    q2c = json.loads(output(blklab, "trace", "stats", trace, "--format", "json"))["all"]["q2c"]
    percentiles = {percent: value for percent, value in q2c["percentiles"]}
    return [percentiles[percent] for percent in PERCENTILES] + [q2c["max"]]


def itself(blklab, trace, case):
    """The same of the recorded job, simulated."""
    with tempfile.TemporaryDirectory() as folder:
        events = pathlib.Path(folder) / "events.blk"
        output(blklab, "run", case, "--trace", events)
        pairs = zip(latencies(blklab, events), latencies(blklab, trace))
        return [simulated / recorded for simulated, recorded in pairs]


def is_near(ratios):
    return all(NEAR[0] <= ratio <= NEAR[1] for ratio in ratios)


def cells(ratios):
    return " | ".join([f"{ratio:.2f}" for ratio in ratios] + ["yes" if is_near(ratios) else "no"])


def main():
    blklab = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/blklab")
    names = sys.argv[2:]
    print("| trace | stack | p50 | p99 | max | within 20 % |\n|---|---|---|---|---|---|")
    far, nr_traces = [], 0
    for trace in sorted(SHARED.glob(f"truth*/traces/*{SUFFIX}")):
        name = trace.name[: -len(SUFFIX)]
        case = trace.parent.parent / "cases" / f"{name}.toml"
        if names and name not in names or not case.exists():
            continue
        ratios = inferred(blklab, trace, case)
        shown = f"`{trace.relative_to(SHARED)}`"
        print(f"| {shown} | `its case` | {cells(ratios)} |", flush=True)
        nr_traces += 1
        if not is_near(ratios):
            far.append(f"| {shown} | {cells(itself(blklab, trace, case))} |")
    print("\nThe recorded job of those that are further off:\n")
    print("| trace | p50 | p99 | max | within 20 % |\n|---|---|---|---|---|")
    print("\n".join(far))
    print(f"\n{nr_traces - len(far)} of {nr_traces} traces are within 20 % in all three figures")


if __name__ == "__main__":
    main()
