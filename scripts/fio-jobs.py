#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What blklab makes of other people's fio jobs, beside fio itself.

    scripts/fio-jobs.py BLKLAB FOLDER... > docs/fio-jobs.md

For each file: whether `fio --parse-only` and `blklab workload` accept it, and
what blklab says about it. Files whose jobs can run on fio's null engine run
there, in both programs, 200 I/Os a job: the offsets that fio's --debug=io shows
are compared with those that blklab lists.

FOLDER holds the job files, which are not part of the repository
(../shared/data/fio-jobs). `fio` 3.33 must be installed.
"""

import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

IOS = 200
SECTION = re.compile(r"^\s*\[([^\]]+)\]")
# What the comparison leaves out of a job.
LEFT_OUT = {
    # The engine and the length are the comparison's own.
    "ioengine", "number_ios", "write_iolog", "ioscheduler",
    # These end or delay jobs by the clock.
    "startdelay", "thinktime", "rate", "rate_iops", "runtime", "timeout", "ramp_time",
    "time_based", "exitall", "exit_what",
    # Workers count an I/O when they have done it: more are queued than number_ios.
    "io_submit_mode",
    # 0 draws seeds from /dev/urandom.
    "randrepeat", "allrandrepeat",
    # This machine may lack the folder or the processors.
    "directory", "cpus_allowed", "numa_cpu_nodes", "numa_mem_policy",
}
# Jobs with these cannot run there.
NOT_THERE = {
    "read_iolog", "include", "flow", "rate_min", "latency_target", "zonemode", "cpuload",
    "exec_prerun", "exec_postrun",
}
# fio puts in what its own machine has, blklab what the simulated one has.
OF_THE_MACHINE = re.compile(r"\$(mb_memory|ncpus|pagesize)\b")
QUEUED = re.compile(r"^io +(\d+) +queue: io_u \S+: off=0x([0-9a-f]+),len=0x([0-9a-f]+),ddir=(\d)")


def run(args, folder, seconds=10):
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
        if name in LEFT_OUT:
            continue
        if name in NOT_THERE or OF_THE_MACHINE.search(line):
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


def run_accepts(blklab, folder, name):
    """Whether `blklab run` takes the file: what it refuses ends at once."""
    with tempfile.TemporaryDirectory() as scratch:
        for other in os.listdir(folder):
            os.symlink(os.path.join(folder, other), os.path.join(scratch, other))
        code, _, _ = run([blklab, "run", name], scratch, seconds=3)
    return "refused" if code == 2 else "accepted"


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
    runs = run_accepts(blklab, folder, name)
    equal = compare(blklab, text) if ours == "accepted" else "-"
    return name, fio, ours, runs, equal, short(why)


def main():
    blklab, folders = os.path.abspath(sys.argv[1]), sys.argv[2:]
    for folder in folders:
        if not os.path.isdir(folder):
            sys.exit("fio-jobs.py: no folder %s: the job files are not part of the repository" % folder)
    paths = sorted(
        os.path.join(folder, name)
        for folder in folders
        for name in os.listdir(folder)
        if not name.lower().startswith("readme")
    )
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda path: row(blklab, path), paths))
    both = collections.Counter((r[1], r[2]) for r in rows)
    refused_by_run = [r[0] for r in rows if r[2] == "accepted" and r[3] == "refused"]
    equal = [r for r in rows if r[4].endswith("equal")]
    differ = [r[0] for r in rows if r[4] == "DIFFERENT"]
    print("""# Other people's fio jobs

This page shows how far blklab understands job files that other people wrote. They come from public
repositories, most of them from fio's own examples and tests. For each file it shows what
`fio --parse-only` of fio 3.33, `blklab workload` and `blklab run` say, and
blklab's notes or the reason why it refuses the file. `--parse-only` checks less than fio does
when it begins a job: fio finds a missing size only then.

The column *offsets* compares the I/Os that both issue on fio's null engine, up to %d per job:
offset, length and direction of each. The comparison leaves out rates, times and options that end
other jobs (`exitall`), which depend on the clock; `io_submit_mode=offload`, whose workers count an
I/O late; `randrepeat=0`, with which fio draws new seeds in each run; and folders and
processors. `-` marks a file that cannot run there: sizes in terms of the machine
(`$mb_memory`), zones, recorded I/O, `flow`, no `size=` (the device gives it), an option of
the engine, no end within 10 s, or a file that a program refuses.

With `experimental_verify` blklab uses the ordinary order of verification, as its note says, so
such jobs differ.

Of the 86 files of Debian 12's package fio-examples, 78 are among these byte for byte. Of the
other eight, both programs accept three (`cmdprio-bssplit`, `nbd`, `pmemblk`); the five for http and
librpma need engines that are not built into the fio used here. blklab does not model these
engines, and `run` refuses them.

`scripts/fio-jobs.py target/debug/blklab ../shared/data/fio-jobs` writes this page; the job
files are not part of the repository.
""" % IOS)
    print("- %d files" % len(rows))
    for (fio, ours), count in sorted(both.items()):
        print("- fio %s, blklab %s: %d" % (fio, ours, count))
    print("- accepted by blklab workload, refused by blklab run: %d" % len(refused_by_run))
    print("- offsets equal: %d files, %d I/Os; different: %d" % (
        len(equal), sum(int(r[4].split()[0]) for r in equal), len(differ)))
    print("\n| file | fio | blklab workload | blklab run | offsets | notes or reason |\n|---|---|---|---|---|---|")
    for r in rows:
        print("| %s |" % " | ".join(r))


if __name__ == "__main__":
    main()
