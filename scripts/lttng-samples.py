#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes small traces as LTTng writes them (CTF 1.8), and what babeltrace2 reads in them.

    scripts/lttng-samples.py testdata/ctf

Layouts are those of lttng-modules 2.13: compact and large event headers, packets with
counts of dropped events, the context procname. The same events are written in either
byte order, and by babeltrace2's own writer. Needs babeltrace2 (Debian: babeltrace2).
"""

import random
import shutil
import struct
import subprocess
import sys
import uuid
from pathlib import Path

UUID = uuid.UUID("4f1d6a3e-0b7c-4c8e-9a51-2d3f60718293")
PACKET_BYTES = 4096
BEGIN_NS = 5_000_000_000

# rwbs of lttng-modules.
WRITE, READ, AHEAD, SYNC, META, FUA, PREFLUSH = 1, 4, 8, 0x20, 0x40, 0x200, 0x400

# Name: fields, each with its type. 'text16' is char[16], 'cmd' a sequence, 'string' ends with NUL.
BIO = [("dev", "u32"), ("sector", "u64"), ("nr_sector", "u32"), ("rwbs", "u32"), ("tid", "s32"), ("comm", "text16")]
RQ = [("dev", "u32"), ("sector", "u64"), ("nr_sector", "u32"), ("bytes", "u32"), ("tid", "s32"), ("rwbs", "u32"),
      ("cmd", "cmd"), ("comm", "text16")]
DONE = [("dev", "u32"), ("sector", "u64"), ("nr_sector", "u32"), ("error", "s32"), ("rwbs", "u32")]
EVENTS = {
    "sched_switch": [("prev_comm", "text16"), ("prev_tid", "s32"), ("prev_prio", "s32"), ("prev_state", "s64"),
                     ("next_comm", "text16"), ("next_tid", "s32"), ("next_prio", "s32")],
    "block_rq_requeue": [("dev", "u32"), ("sector", "u64"), ("nr_sector", "u32"), ("rwbs", "u32")],
    "block_rq_complete": DONE,
    "block_rq_insert": RQ,
    "block_rq_issue": RQ,
    "block_bio_backmerge": BIO,
    "block_bio_frontmerge": BIO,
    "block_bio_queue": BIO,
    "block_getrq": BIO,
    "block_plug": [("tid", "s32"), ("comm", "text16")],
    "block_unplug": [("nr_rq", "s32"), ("tid", "s32"), ("comm", "text16")],
    "block_split": [("dev", "u32"), ("sector", "u64"), ("new_sector", "u64"), ("rwbs", "u32"), ("tid", "s32"),
                    ("comm", "text16")],
    "block_bio_remap": [("dev", "u32"), ("sector", "u64"), ("nr_sector", "u32"), ("old_dev", "u32"),
                        ("old_sector", "u64"), ("rwbs", "u32")],
    "jbd2_start_commit": [("dev", "u32"), ("sync_commit", "s8"), ("transaction", "s32")],
    "jbd2_commit_locking": [("dev", "u32"), ("sync_commit", "s8"), ("transaction", "s32")],
    "jbd2_commit_flushing": [("dev", "u32"), ("sync_commit", "s8"), ("transaction", "s32")],
    "jbd2_commit_logging": [("dev", "u32"), ("sync_commit", "s8"), ("transaction", "s32")],
    "jbd2_end_commit": [("dev", "u32"), ("sync_commit", "s8"), ("transaction", "s32"), ("head", "s32")],
    "ext4_sync_file_enter": [("dev", "u32"), ("ino", "u64"), ("parent", "u64"), ("datasync", "s32")],
    "ext4_sync_file_exit": [("dev", "u32"), ("ino", "u64"), ("ret", "s32")],
    # A number beyond the 31 of the compact header, and a text of any length.
    "lttng_statedump_block_device": [("dev", "u32"), ("diskname", "string")],
}
NUMBERS = {name: i + (40 if name.startswith("lttng") else 0) for i, name in enumerate(EVENTS)}
TYPES = {
    "u8": ("B", 8, "false"), "s8": ("b", 8, "true"), "u32": ("I", 32, "false"), "s32": ("i", 32, "true"),
    "u64": ("Q", 64, "false"), "s64": ("q", 64, "true"),
}


def dev(major, minor):
    return major << 20 | minor


def integer(size, signed="false", more=""):
    return f"integer {{ size = {size}; align = 8; signed = {signed}; encoding = none; base = 10; {more}}}"


def fields_text(fields):
    lines = []
    for name, kind in fields:
        if kind == "text16":
            lines.append("integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } "
                         f"_{name}[16];")
        elif kind == "string":
            lines.append(f"string _{name};")
        elif kind == "cmd":
            lines.append(f"{integer(64)} __{name}_length;")
            lines.append(f"integer {{ size = 8; align = 8; signed = 0; encoding = none; base = 16; }} "
                         f"_{name}[ __{name}_length ];")
        else:
            _, size, signed = TYPES[kind]
            lines.append(f"{integer(size, signed)} _{name};")
    return "\n\t\t".join(lines)


def metadata(big_endian, large):
    header = ("struct event_header_large" if large else "struct event_header_compact")
    text = f"""/* CTF 1.8 */

typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := unsigned long;
typealias integer {{ size = 5; align = 1; signed = false; }} := uint5_t;
typealias integer {{ size = 27; align = 1; signed = false; }} := uint27_t;

trace {{
	major = 1;
	minor = 8;
	uuid = "{UUID}";
	byte_order = {"be" if big_endian else "le"};
	packet.header := struct {{
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	}};
}};

env {{
	hostname = "sample";
	domain = "kernel";
	sysname = "Linux";
	kernel_release = "6.1.0-18-amd64";
	kernel_version = "#1 SMP PREEMPT_DYNAMIC";
	tracer_name = "lttng-modules";
	tracer_major = 2;
	tracer_minor = 13;
	tracer_patchlevel = 9;
	trace_buffering_scheme = "global";
}};

clock {{
	name = "monotonic";
	uuid = "d4f2b5c6-1f2e-4d3c-8b9a-0123456789ab";
	description = "Monotonic Clock";
	freq = 1000000000; /* Frequency, in Hz */
	/* clock value offset from Epoch is: offset * (1/freq) */
	offset = 1700000000000000000;
}};

typealias integer {{ size = 27; align = 1; signed = false; map = clock.monotonic.value; }} := uint27_clock_monotonic_t;
typealias integer {{ size = 32; align = 8; signed = false; map = clock.monotonic.value; }} := uint32_clock_monotonic_t;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := uint64_clock_monotonic_t;

struct packet_context {{
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint32_t cpu_id;
}};

struct event_header_compact {{
	enum : uint5_t {{ compact = 0 ... 30, extended = 31 }} id;
	variant <id> {{
		struct {{
			uint27_clock_monotonic_t timestamp;
		}} compact;
		struct {{
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		}} extended;
	}} v;
}} align(8);

struct event_header_large {{
	enum : uint16_t {{ compact = 0 ... 65534, extended = 65535 }} id;
	variant <id> {{
		struct {{
			uint32_clock_monotonic_t timestamp;
		}} compact;
		struct {{
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		}} extended;
	}} v;
}} align(8);

stream {{
	id = 0;
	event.header := {header};
	packet.context := struct packet_context;
	event.context := struct {{
		integer {{ size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; }} _procname[17];
	}};
}};
"""
    for name, fields in EVENTS.items():
        text += f"""
event {{
	name = "{name}";
	id = {NUMBERS[name]};
	stream_id = 0;
	fields := struct {{
		{fields_text(fields)}
	}};
}};
"""
    return text.encode()


class Writer:
    """One file of packets."""

    def __init__(self, cpu, big_endian, large):
        self.cpu, self.order, self.large = cpu, ">" if big_endian else "<", large
        self.big_endian, self.out, self.sequence, self.discarded = big_endian, b"", 0, 0
        self.begin(BEGIN_NS)

    def pack(self, kinds, *values):
        return struct.pack(self.order + kinds, *values)

    def begin(self, time):
        self.events, self.first, self.last = b"", time, time

    def end(self):
        header = self.pack("I", 0xC1FC1FC1) + UUID.bytes + self.pack("IQ", 0, self.cpu)
        size = len(header) + 8 * 6 + 4 + len(self.events)
        context = self.pack("QQQQQQI", self.first, self.last, size * 8, PACKET_BYTES * 8, self.sequence,
                            self.discarded, self.cpu)
        self.out += (header + context + self.events).ljust(PACKET_BYTES, b"\0")
        self.sequence += 1

    def header(self, number, time):
        wide = time - self.last >= 1 << (32 if self.large else 27)
        if self.large:
            if wide or number >= 65535:
                return self.pack("HIQ", 65535, number, time)
            return self.pack("HI", number, time & 0xFFFFFFFF)
        if wide or number >= 31:
            # Five bits, then whole bytes.
            first = 31 << 3 if self.big_endian else 31
            return bytes([first]) + self.pack("IQ", number, time)
        low = time & 0x7FFFFFF
        return self.pack("I", number << 27 | low if self.big_endian else low << 5 | number)

    def event(self, time, name, comm, values):
        if self.first == BEGIN_NS and not self.events:
            self.first = self.last = time
        body = comm.encode().ljust(17, b"\0")
        for field, kind in EVENTS[name]:
            value = values[field]
            if kind == "text16":
                body += value.encode().ljust(16, b"\0")
            elif kind == "string":
                body += value.encode() + b"\0"
            elif kind == "cmd":
                body += self.pack("Q", len(value)) + value
            else:
                body += self.pack(TYPES[kind][0], value)
        whole = self.header(NUMBERS[name], time) + body
        if len(self.events) + len(whole) > PACKET_BYTES - 120:
            self.end()
            if self.sequence == 1 and self.cpu == 1:
                self.discarded += 3
            self.begin(time)
            whole = self.header(NUMBERS[name], time) + body
        self.events += whole
        self.last = time


def workload():
    """Events in order of time: (ns, cpu, name, procname, fields)."""
    rng, time, all_events = random.Random(14), BEGIN_NS, []
    disk, part, nr = dev(8, 0), dev(8, 2), 0

    def say(cpu, name, procname, /, **values):
        nonlocal time
        time += rng.randrange(300, 3000)
        all_events.append((time, cpu, name, procname, values))

    say(0, "lttng_statedump_block_device", "lttng-consumerd", dev=disk, diskname="sda")
    for i in range(24):
        comm, tid = [("dd", 907), ("postgres", 1204), ("jbd2/sda2-8", 311)][i % 3]
        cpu = i % 2
        sector, rwbs = 204800 + 4096 * i, [WRITE, WRITE | SYNC, WRITE | SYNC | META][i % 3]
        if i % 8 == 7:
            rwbs = READ | AHEAD
        own = dict(tid=tid, comm=comm)
        say(cpu, "sched_switch", "swapper/%d" % cpu, prev_comm="swapper/%d" % cpu, prev_tid=0, prev_prio=20,
            prev_state=0, next_comm=comm, next_tid=tid, next_prio=20)
        if i % 6 == 1:
            say(cpu, "ext4_sync_file_enter", comm, dev=part, ino=131, parent=2, datasync=0)
        if i % 6 == 2:
            nr += 1
            for step in ["start_commit", "commit_locking", "commit_flushing", "commit_logging"]:
                say(cpu, "jbd2_" + step, comm, dev=part, sync_commit=1, transaction=nr)
        say(cpu, "block_bio_remap", comm, dev=disk, sector=sector + 2048, nr_sector=8, old_dev=part,
            old_sector=sector, rwbs=rwbs)
        sector += 2048
        say(cpu, "block_bio_queue", comm, dev=disk, sector=sector, nr_sector=8, rwbs=rwbs, **own)
        say(cpu, "block_getrq", comm, dev=disk, sector=sector, nr_sector=8, rwbs=rwbs, **own)
        say(cpu, "block_plug", comm, **own)
        size = 8
        if i % 4 == 0:
            say(cpu, "block_bio_queue", comm, dev=disk, sector=sector + 8, nr_sector=16, rwbs=rwbs, **own)
            say(cpu, "block_split", comm, dev=disk, sector=sector + 8, new_sector=sector + 16, rwbs=rwbs, **own)
            say(cpu, "block_bio_backmerge", comm, dev=disk, sector=sector + 8, nr_sector=8, rwbs=rwbs, **own)
            size = 16
        say(cpu, "block_unplug", comm, nr_rq=1, **own)
        request = dict(dev=disk, sector=sector, nr_sector=size, bytes=size * 512, rwbs=rwbs, cmd=b"", **own)
        say(cpu, "block_rq_insert", comm, **request)
        say(cpu, "block_rq_issue", comm, **request)
        if i % 9 == 5:
            say(cpu, "block_rq_requeue", comm, dev=disk, sector=sector, nr_sector=size, rwbs=rwbs)
            say(cpu, "block_rq_issue", comm, **request)
        time += rng.randrange(100_000, 9_000_000)
        if i == 12:
            # More than the 27 bits of a compact header can say.
            time += 400_000_000
        say(1 - cpu, "block_rq_complete", "swapper/%d" % (1 - cpu), dev=disk, sector=sector, nr_sector=size,
            error=-5 if i == 20 else 0, rwbs=rwbs)
        if i % 6 == 2:
            flush = dict(dev=disk, sector=0, nr_sector=0, bytes=0, rwbs=PREFLUSH | WRITE, cmd=b"", **own)
            say(cpu, "block_rq_issue", comm, **flush)
            time += rng.randrange(500_000, 2_000_000)
            say(cpu, "block_rq_complete", comm, dev=disk, sector=0, nr_sector=0, error=0, rwbs=PREFLUSH | WRITE)
            say(cpu, "jbd2_end_commit", comm, dev=part, sync_commit=1, transaction=nr, head=nr - 1)
            say(1 - cpu, "ext4_sync_file_exit", "postgres", dev=part, ino=131, ret=0)
    command = b"\x12\0\0\0\x60\0"
    say(0, "block_rq_issue", "smartd", dev=disk, sector=0, nr_sector=0, bytes=96, rwbs=0, cmd=command, tid=77,
        comm="smartd")
    say(0, "block_rq_complete", "smartd", dev=disk, sector=0, nr_sector=0, error=0, rwbs=0)
    return all_events


def packetised(text, big_endian):
    order, out = ">" if big_endian else "<", b""
    for at in range(0, len(text), 4000):
        part = text[at:at + 4000]
        bits = (37 + len(part)) * 8
        head = struct.pack(order + "I", 0x75D11D57) + UUID.bytes
        head += struct.pack(order + "III", 0, bits, 4096 * 8) + bytes([0, 0, 0, 1, 8])
        out += (head + part).ljust(4096, b"\0")
    return out


def write(folder, big_endian, large, packets):
    folder.mkdir(parents=True)
    text = metadata(big_endian, large)
    (folder / "metadata").write_bytes(packetised(text, big_endian) if packets else text)
    writers = [Writer(cpu, big_endian, large) for cpu in range(2)]
    for time, cpu, name, comm, values in workload():
        writers[cpu].event(time, name, comm, values)
    for cpu, writer in enumerate(writers):
        writer.end()
        (folder / f"channel0_{cpu}").write_bytes(writer.out)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    target = Path(sys.argv[1])
    shapes = {"le-compact": (False, False, True), "be-compact": (True, False, True), "le-large": (False, True, False)}
    for name in [*shapes, "babeltrace2"]:
        shutil.rmtree(target / name, ignore_errors=True)
    for name, shape in shapes.items():
        write(target / name / "kernel", *shape)
    run("babeltrace2", str(target / "le-compact"), "-o", "ctf", "-w", str(target / "babeltrace2"))
    text = run("babeltrace2", "--clock-seconds", "--no-delta", str(target / "le-compact"))
    (target / "le-compact.txt").write_text(text)
    for name in ["be-compact", "le-large"]:
        other = run("babeltrace2", "--clock-seconds", "--no-delta", str(target / name))
        assert other == text, f"babeltrace2 reads {name} otherwise"


if __name__ == "__main__":
    main()
