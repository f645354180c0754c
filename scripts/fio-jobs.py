#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What blklab makes of other people's fio jobs, beside fio itself.

    scripts/fio-jobs.py BLKLAB FOLDER... > docs/fio-jobs.md

For each file: whether `fio --parse-only` and `blklab workload` accept it, and
what blklab says about it. Files whose jobs can run on fio's null engine run
there, in both programs, 200 I/Os a job: the offsets that fio's --debug=io shows
are compared with those that blklab lists.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

IOS = 200
SECTION = re.compile(r"^\s*\[([^\]]+)\]")
QUEUED = re.compile(r"^io +(\d+) +queue: io_u \S+: off=0x([0-9a-f]+),len=0x([0-9a-f]+),ddir=(\d)")


def run(args, folder, seconds=20):
    try:
        done = subprocess.run(
            args, cwd=folder, capture_output=True, text=True, errors="replace", timeout=seconds
        )
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return None, "", "no end within %d s" % seconds


def short(text):
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= 150 else text[:149] + "…"


def on_null_engine(text):
    """The job file on the null engine, each job bounded; None if it cannot."""
    lines, has_global = [], False
    for line in text.splitlines():
        name = line.split("=")[0].strip()
        if name in ("ioengine", "number_ios", "write_iolog", "startdelay", "thinktime", "ioscheduler",
                    "rate", "rate_iops", "runtime", "timeout", "ramp_time", "time_based"):
            continue
        if name in ("read_iolog", "include", "flow", "rate_min", "latency_target", "zonemode",
                    "cpuload", "exec_prerun", "exec_postrun"):
            return None
        lines.append(line)
        head = SECTION.match(line)
        if head and not has_global:
            has_global = True
            add = ["ioengine=null", "number_ios=%d" % IOS, "iodepth=1"]
            if head.group(1) == "global":
                lines += add
            else:
                lines[-1:-1] = ["[global]"] + add
    return "\n".join(line for line in lines if not re.match(r"\s*iodepth\s*=", line)
                     or line == "iodepth=1") + "\n"


def offsets_of_fio(folder, name):
    code, out, err = run(["fio", "--debug=io", "--eta=never", name], folder)
    if code != 0:
        return None
    jobs = collections.OrderedDict()
    for line in (out + err).splitlines():
        found = QUEUED.match(line)
        if found:
            pid, offset, length, ddir = found.groups()
            if ddir in "012":
                jobs.setdefault(int(pid), []).append((int(offset, 16), int(length, 16), int(ddir)))
    return sorted(jobs.values())


def offsets_of_blklab(blklab, folder, name):
    code, out, _ = run([blklab, "workload", "--output-format", "csv", name], folder)
    if code != 0:
        return None
    ddirs = {"read": 0, "write": 1, "trim": 2}
    jobs = collections.OrderedDict()
    for line in out.splitlines()[1:]:
        job, op, offset, length = line.split(",")[:4]
        if op in ddirs:
            jobs.setdefault(int(job), []).append((int(offset), int(length), ddirs[op]))
    return sorted(jobs.values())


def compare(blklab, text):
    job = on_null_engine(text)
    if job is None:
        return "-"
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "job.fio"), "w") as f:
            f.write(job)
        theirs = offsets_of_fio(folder, "job.fio")
        ours = offsets_of_blklab(blklab, folder, "job.fio")
    if not theirs or not ours:
        return "-"
    ios = sum(map(len, theirs))
    return "%d I/Os equal" % ios if theirs == ours else "DIFFERENT"


def row(blklab, path):
    folder, name = os.path.split(os.path.abspath(path))
    text = open(path, errors="replace").read()
    code, out, err = run(["fio", "--parse-only", name], folder)
    said = (out + err).strip()
    fio = "accepted" if code == 0 and not re.search(r"dropped|[Bb]ad option|failed|error", said) else "refused"
    code, _, err = run([blklab, "workload", "-n", "1", name], folder)
    notes = [line[len("note: "):] for line in err.splitlines() if line.startswith("note: ")]
    if code == 0:
        ours = "accepted"
        why = "; ".join(note.split(name + ":", 1)[-1].strip() for note in notes[:3])
        if len(notes) > 3:
            why += "; %d more notes" % (len(notes) - 3)
    else:
        ours = "refused"
        why = err.strip().splitlines()[-1] if err.strip() else "?"
        why = why.replace("blklab: ", "").replace(name + ": ", "").replace(name + ":", "line ")
    equal = compare(blklab, text) if ours == "accepted" else "-"
    return name, fio, ours, equal, short(why)


def main():
    blklab, folders = os.path.abspath(sys.argv[1]), sys.argv[2:]
    paths = sorted(
        os.path.join(folder, name)
        for folder in folders
        for name in os.listdir(folder)
        if not name.lower().startswith("readme")
    )
    rows = [row(blklab, path) for path in paths]
    both = collections.Counter((r[1], r[2]) for r in rows)
    equal = [r for r in rows if r[3].endswith("equal")]
    differ = [r[0] for r in rows if r[3] == "DIFFERENT"]
    print("""# Other people's fio jobs

Generated by `scripts/fio-jobs.py`: job files from public repositories, what
`fio --parse-only` of fio 3.33 and `blklab workload` say to each, and blklab's notes or
the reason why it refuses. The column *offsets* compares what both issue on fio's null
engine, up to %d I/Os a job, without rates and times (`-`: cannot run there).
""" % IOS)
    print("- %d files" % len(rows))
    for (fio, ours), count in sorted(both.items()):
        print("- fio %s, blklab %s: %d" % (fio, ours, count))
    print("- offsets equal: %d files, %d I/Os; different: %d" % (
        len(equal), sum(int(r[3].split()[0]) for r in equal), len(differ)))
    print("\n| file | fio | blklab | offsets | notes or reason |\n|---|---|---|---|---|")
    for r in rows:
        print("| %s |" % " | ".join(r))


if __name__ == "__main__":
    main()
