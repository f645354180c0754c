// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of scenarios.

use super::{Kind, Parameter, Spec};

const fn size(name: &'static str, default: &'static str, help: &'static str) -> Parameter {
    Parameter {
        name,
        default,
        kind: Kind::Size(1, 1 << 42),
        help,
    }
}

const fn count(
    name: &'static str,
    default: &'static str,
    range: (u64, u64),
    help: &'static str,
) -> Parameter {
    Parameter {
        name,
        default,
        kind: Kind::Number(range.0, range.1),
        help,
    }
}

const WRITE_SIZE: Parameter = size("size", "10g", "bytes that dd writes");
const WRITE_BS: Parameter = size("bs", "1m", "bytes of each write of dd");
const DIRECT: Parameter = count("direct", "0", (0, 1), "dd writes with O_DIRECT");
const READERS: Parameter = count(
    "readers",
    "41",
    (1, 4000),
    "readers; the first 41 start as in the experiment, further ones every 4 s",
);

/// All scenarios.
pub const ALL: &[Spec] = &[
    Spec {
        name: "dd",
        summary: "one process writes a file from beginning to end",
        source: "dd of coreutils: read(/dev/zero), write, without advice or sync",
        kernel: "2.6.28",
        fio: "1.24",
        parameters: &[WRITE_SIZE, WRITE_BS, DIRECT],
        left_out: "",
        left_out_on_extents: "",
    },
    Spec {
        name: "dd+ls",
        summary: "dd beside readers of a few random blocks, as ls reads directories",
        source: "January 2009, slow logins during a copy: 9 reads of 4 KiB stand for ls (its own \
                 job file was not published; 8 to 11 fit its shortest run times)",
        kernel: "2.6.28",
        fio: "1.24",
        parameters: &[
            WRITE_SIZE,
            READERS,
            count("reads", "9", (1, 10_000), "reads of each reader"),
        ],
        left_out: "",
        left_out_on_extents: "",
    },
    Spec {
        name: "dd+ssh",
        summary: "dd beside readers of 2 MiB in random pieces of 4 to 44 KiB, as a login reads \
                  programs",
        source: "January 2009, slow logins during a copy: its fio job file",
        kernel: "2.6.28",
        fio: "1.24",
        parameters: &[
            WRITE_SIZE,
            READERS,
            size("read_size", "2m", "bytes that each reader reads"),
            size("file_size", "30m", "size of each reader's file"),
        ],
        left_out: "",
        left_out_on_extents: "",
    },
    Spec {
        name: "dd+cat",
        summary: "dd, and after a while cat of the small files of /etc on cold caches",
        source: "December 2012, writes that count as sync starve reads in request allocation",
        kernel: "3.7",
        fio: "3.33",
        parameters: &[
            WRITE_SIZE,
            WRITE_BS,
            DIRECT,
            count("writers", "1", (0, 64), "processes that write; 0 for none"),
            count("start", "30", (0, 100_000), "seconds until cat starts"),
            count("files", "250", (1, 100_000), "files"),
            size("mean", "4608", "mean size of a file"),
            size("median", "1536", "median size of a file"),
            size(
                "read_bs",
                "64k",
                "bytes of each read of cat (32k before 2012)",
            ),
            count(
                "inode_blocks",
                "45",
                (0, 100_000),
                "cold blocks of the inode table",
            ),
            count(
                "directory_blocks",
                "10",
                (0, 100_000),
                "cold blocks of the directory",
            ),
            Parameter {
                name: "spread",
                default: "256m",
                kind: Kind::Size(0, 1 << 40),
                help: "bytes of disk over which the files are spread: two block groups",
            },
        ],
        left_out: "dd+cat: blocks of the inode table and of the directory are two files beside the \
                   small ones",
        left_out_on_extents: "dd+cat: without a filesystem only dd writes its data (with \
                              ext3: the journal thread, as sync writes)",
    },
    Spec {
        name: "pvfs-bench",
        summary: "one file written in order, by pwrite or by asynchronous writes of which 16 are \
                  outstanding",
        source: "March 2006, PVFS2 write stalls: 65536 operations (8 GiB in pieces of 128 KiB, or \
                 16 GiB in pieces of 256 KiB)",
        kernel: "2.6.16",
        fio: "1.24",
        parameters: &[
            Parameter {
                name: "mode",
                default: "aio16",
                kind: Kind::Word(&["aio16", "alt-aio", "pwrite"]),
                help: "glibc's AIO, PVFS2's replacement (a thread per operation), or pwrite",
            },
            count("ops", "65536", (1, 1 << 32), "operations"),
            size("bs", "128k", "bytes of each operation"),
            count(
                "depth",
                "16",
                (1, 4096),
                "operations outstanding (not with pwrite)",
            ),
            count(
                "limit",
                "16",
                (1, 4096),
                "operations that the storage layer has in progress",
            ),
            count(
                "regions",
                "1",
                (1, 65_536),
                "regions of each operation: one list of them",
            ),
            count("aio_threads", "20", (1, 4096), "most threads of glibc"),
            Parameter {
                name: "notify",
                default: "thread",
                kind: Kind::Word(&["none", "signal", "thread"]),
                help: "how glibc tells that an operation is done (thread: a new one each time)",
            },
        ],
        left_out: "",
        left_out_on_extents: "",
    },
    Spec {
        name: "aio-batch",
        summary: "tasks that submit batches of random direct reads",
        source: "January 2010, CFQ's quantum on an SSD: two tasks, 32 reads of 4 KiB each",
        kernel: "2.6.33",
        fio: "3.33",
        parameters: &[
            count("tasks", "2", (1, 4000), "tasks"),
            count("batch", "32", (1, 65_536), "reads of one io_submit"),
            size("bs", "4k", "bytes of each read"),
            size("size", "4g", "part of the disk that each task reads"),
            count("runtime", "30", (1, 100_000), "seconds"),
            Parameter {
                name: "refill",
                default: "all",
                kind: Kind::Word(&["all", "one"]),
                help: "submit again when all are done, or as each completes",
            },
        ],
        left_out: "",
        left_out_on_extents: "",
    },
    Spec {
        name: "compilebench",
        summary: "kernel source trees created, and some read, file by file, with sync at the end",
        source: "compilebench 0.6, with the recorded shape of its trees; August 2008, eight \
                 filesystems (30 initial trees, no random operations)",
        kernel: "2.6.26",
        fio: "3.33",
        parameters: &[
            count("initial", "30", (0, 1000), "trees created at first"),
            count(
                "reads",
                "0",
                (0, 1000),
                "trees read afterwards, caches dropped before each",
            ),
            count(
                "stats",
                "0",
                (0, 1000),
                "trees looked at afterwards, caches dropped before each",
            ),
            count("runs", "0", (0, 100_000), "random operations"),
            count(
                "ordering",
                "1",
                (0, 1),
                "write and remove each set once at first",
            ),
            count(
                "seed",
                "555",
                (0, u32::MAX as u64),
                "seed of the random operations",
            ),
            count(
                "sync",
                "1",
                (0, 1),
                "sync after the initial trees and after each operation",
            ),
            size("buffer", "256k", "bytes of its buffer"),
            count(
                "file_cost_us",
                "150",
                (0, 1_000_000),
                "processor time per file, in us",
            ),
        ],
        left_out: "",
        left_out_on_extents: "compilebench: on the extent layout, where no filesystem is chosen, \
                              directories and inodes take processor time but no I/O, and what is \
                              removed frees no space",
    },
];
