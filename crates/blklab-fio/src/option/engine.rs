// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O engines of fio 3.33 and their own options.
//!
//! Source: `fio --enghelp` and `fio --enghelp=ENGINE,NAME` of Debian's build.
//! How each engine answers a request: the manual page and measurements.

use super::Effect::{Nothing, Shapes, Unsupported};
use super::Kind::{Bool, Flag, Int, Keyword, OptionalText, Text};
use super::{Group, INT, OptionSpec, PERCENT, row};

/// How an engine answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// Every request is completed within the call.
    Synchronous,
    /// Requests are queued, up to the depth.
    Asynchronous,
    /// As synchronous at depth 1, queued above (the `null` engine).
    ByDepth,
    /// The engine moves no data: its jobs burn processor time, run commands,
    /// make or look at files. They are left out.
    NoData,
    /// The engine does something else than reading and writing files.
    NotModelled,
}

/// One I/O engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineSpec {
    /// Its name in job files.
    pub name: &'static str,
    /// How it answers a request.
    pub queueing: Queueing,
    /// Whether files have no size and need not exist (no data is moved).
    pub diskless: bool,
    /// Its own options.
    pub options: &'static [OptionSpec],
}

const fn spec(
    name: &'static str,
    queueing: Queueing,
    options: &'static [OptionSpec],
) -> EngineSpec {
    EngineSpec {
        name,
        queueing,
        diskless: false,
        options,
    }
}

/// The engines that fio 3.33 of Debian loads.
#[rustfmt::skip]
pub const ENGINES: &[EngineSpec] = &[
    spec("sync", Queueing::Synchronous, &[]),
    spec("psync", Queueing::Synchronous, &[]),
    spec("vsync", Queueing::Asynchronous, &[]),
    spec("pvsync", Queueing::Synchronous, &[]),
    spec("pvsync2", Queueing::Synchronous, PVSYNC2),
    spec("libaio", Queueing::Asynchronous, LIBAIO),
    spec("io_uring", Queueing::Asynchronous, IO_URING),
    spec("posixaio", Queueing::Asynchronous, &[]),
    spec("mmap", Queueing::Synchronous, MMAP),
    EngineSpec { name: "null", queueing: Queueing::ByDepth, diskless: true, options: &[] },
    spec("io_uring_cmd", Queueing::NotModelled, IO_URING),
    spec("cpuio", Queueing::NoData, CPUIO),
    spec("net", Queueing::NotModelled, NET),
    spec("netsplice", Queueing::NotModelled, NET),
    spec("ftruncate", Queueing::NotModelled, &[]),
    spec("filecreate", Queueing::NoData, &[]),
    spec("filestat", Queueing::NoData, FILESTAT),
    spec("filedelete", Queueing::NoData, &[]),
    spec("exec", Queueing::NoData, EXEC),
    spec("falloc", Queueing::NotModelled, &[]),
    spec("e4defrag", Queueing::NotModelled, E4DEFRAG),
    spec("splice", Queueing::Synchronous, &[]),
    spec("gfapi", Queueing::NotModelled, GFAPI),
    spec("gfapi_async", Queueing::NotModelled, GFAPI),
    spec("mtd", Queueing::NotModelled, MTD),
    spec("sg", Queueing::NotModelled, SG),
    spec("nbd", Queueing::NotModelled, NBD),
    spec("rdma", Queueing::NotModelled, RDMA),
    spec("rados", Queueing::NotModelled, RADOS),
    spec("rbd", Queueing::NotModelled, RBD),
    spec("pmemblk", Queueing::NotModelled, &[]),
    spec("dev-dax", Queueing::NotModelled, &[]),
    spec("libpmem", Queueing::NotModelled, &[]),
    // Engines of fio 3.33 that Debian does not build: their jobs are read, so
    // that one can be told which part of them cannot be simulated.
    spec("dfs", Queueing::NotModelled, DFS),
    spec("http", Queueing::NotModelled, HTTP),
    spec("libcufile", Queueing::NotModelled, LIBCUFILE),
    spec("librpma_apm_client", Queueing::NotModelled, LIBRPMA),
    spec("librpma_apm_server", Queueing::NotModelled, LIBRPMA),
    spec("librpma_gpspm_client", Queueing::NotModelled, LIBRPMA),
    spec("librpma_gpspm_server", Queueing::NotModelled, LIBRPMA),
    spec("nfs", Queueing::NotModelled, NFS),
];

impl EngineSpec {
    /// Whether its jobs are simulated.
    pub fn is_simulated(&self) -> bool {
        !matches!(self.queueing, Queueing::NoData | Queueing::NotModelled)
    }
}

/// The engine of that name. What follows a colon or a comma does not count.
pub fn engine(name: &str) -> Option<&'static EngineSpec> {
    let plain = name.split([',', ':']).next().unwrap_or(name);
    let plain = if plain == "linuxaio" { "libaio" } else { plain };
    ENGINES.iter().find(|engine| engine.name == plain)
}

/// The options of that engine; none for an unknown one.
pub fn engine_options(name: &str) -> &'static [OptionSpec] {
    engine(name).map_or(&[], |engine| engine.options)
}

#[rustfmt::skip]
const CPUIO: &[OptionSpec] = &[
    row("cpuload", "", INT, "", Group::Engine, ENGINE),
    row("cpuchunks", "", INT, "50000", Group::Engine, ENGINE),
    row("cpumode", "", Keyword(&["noop", "qsort"]), "noop", Group::Engine, ENGINE),
    row("exit_on_io_done", "", Bool, "0", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const MMAP: &[OptionSpec] = &[
    row("thp", "", INT, "", Group::Engine, Unsupported("pages of the cache are small")),
];

#[rustfmt::skip]
const PVSYNC2: &[OptionSpec] = &[
    row("hipri", "", Flag, "", Group::Engine, POLLED),
    row("hipri_percentage", "", PERCENT, "100", Group::Engine, POLLED),
    row("uncached", "", INT, "", Group::Engine, UNCACHED),
    row("nowait", "", Bool, "", Group::Engine, NOWAIT),
];

#[rustfmt::skip]
const NET: &[OptionSpec] = &[
    row("hostname", "", Text, "", Group::Engine, ENGINE),
    row("port", "", Int { min: 1, max: 65535 }, "", Group::Engine, ENGINE),
    row("protocol", "proto", Keyword(&["tcp", "tcpv6", "udp", "udpv6", "unix"]), "tcp", Group::Engine, ENGINE),
    row("nodelay", "", Bool, "", Group::Engine, ENGINE),
    row("listen", "", Flag, "", Group::Engine, ENGINE),
    row("pingpong", "", Flag, "", Group::Engine, ENGINE),
    row("interface", "", Text, "", Group::Engine, ENGINE),
    row("ttl", "", INT, "1", Group::Engine, ENGINE),
    row("window_size", "", INT, "", Group::Engine, ENGINE),
    row("mss", "", INT, "", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const FILESTAT: &[OptionSpec] = &[
    row("stat_type", "", Keyword(&["stat", "lstat", "statx"]), "stat", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const EXEC: &[OptionSpec] = &[
    row("program", "", Text, "", Group::Engine, ENGINE),
    row("arguments", "", Text, "", Group::Engine, ENGINE),
    row("grace_time", "", INT, "1", Group::Engine, ENGINE),
    row("std_redirect", "", Bool, "1", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const E4DEFRAG: &[OptionSpec] = &[
    row("donorname", "", Text, "", Group::Engine, ENGINE),
    row("inplace", "", Int { min: 0, max: 1 }, "", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const GFAPI: &[OptionSpec] = &[
    row("volume", "", Text, "", Group::Engine, ENGINE),
    row("brick", "", Text, "", Group::Engine, ENGINE),
    row("single-instance", "", Bool, "", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const MTD: &[OptionSpec] = &[
    row("skip_bad", "", Bool, "0", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const SG: &[OptionSpec] = &[
    row("hipri", "", Flag, "", Group::Engine, ENGINE),
    row("readfua", "", Bool, "0", Group::Engine, ENGINE),
    row("writefua", "", Bool, "0", Group::Engine, ENGINE),
    row("sg_write_mode", "", Keyword(&["write", "write_and_verify", "verify", "write_same", "same", "write_same_ndob", "verify_bytchk_00", "verify_bytchk_01", "verify_bytchk_11", "write_stream"]), "write", Group::Engine, ENGINE),
    row("stream_id", "", INT, "0", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const IO_URING: &[OptionSpec] = &[
    row("hipri", "", Flag, "", Group::Engine, POLLED),
    row("cmdprio_percentage", "", PERCENT, "", Group::Engine, Shapes),
    row("cmdprio_class", "", Int { min: 1, max: 3 }, "", Group::Engine, Shapes),
    row("cmdprio", "", Int { min: 0, max: 7 }, "", Group::Engine, Shapes),
    row("cmdprio_bssplit", "", Text, "", Group::Engine, Shapes),
    row("fixedbufs", "", Flag, "", Group::Engine, SAME_IO),
    row("registerfiles", "", Flag, "", Group::Engine, SAME_IO),
    row("sqthread_poll", "", Flag, "", Group::Engine, Unsupported("the job submits its requests itself")),
    row("sqthread_poll_cpu", "", INT, "", Group::Engine, Nothing("it counts only with sqthread_poll, which has a note")),
    row("nonvectored", "", INT, "-1", Group::Engine, SAME_IO),
    row("uncached", "", INT, "", Group::Engine, UNCACHED),
    row("nowait", "", Bool, "", Group::Engine, NOWAIT),
    row("force_async", "", INT, "", Group::Engine, Unsupported("the job submits its requests itself, not a worker")),
    row("cmd_type", "", Keyword(&["nvme"]), "nvme", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const NBD: &[OptionSpec] = &[
    row("uri", "", Text, "", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const LIBAIO: &[OptionSpec] = &[
    row("userspace_reap", "", Flag, "", Group::Engine, SAME_IO),
    row("cmdprio_percentage", "", PERCENT, "", Group::Engine, Shapes),
    row("cmdprio_class", "", Int { min: 1, max: 3 }, "", Group::Engine, Shapes),
    row("cmdprio", "", Int { min: 0, max: 7 }, "", Group::Engine, Shapes),
    row("cmdprio_bssplit", "", Text, "", Group::Engine, Shapes),
    row("nowait", "", Bool, "", Group::Engine, NOWAIT),
];

#[rustfmt::skip]
const RDMA: &[OptionSpec] = &[
    row("hostname", "", Text, "", Group::Engine, ENGINE),
    row("bindname", "", Text, "", Group::Engine, ENGINE),
    row("port", "", Int { min: 1, max: 65535 }, "", Group::Engine, ENGINE),
    row("verb", "proto", Keyword(&["write", "read", "send", "recv"]), "write", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const RADOS: &[OptionSpec] = &[
    row("clustername", "", Text, "", Group::Engine, ENGINE),
    row("pool", "", Text, "", Group::Engine, ENGINE),
    row("clientname", "", Text, "", Group::Engine, ENGINE),
    row("conf", "", Text, "/etc/ceph/ceph.conf", Group::Engine, ENGINE),
    row("busy_poll", "", Bool, "0", Group::Engine, ENGINE),
    row("touch_objects", "", Bool, "1", Group::Engine, ENGINE),
];

#[rustfmt::skip]
const RBD: &[OptionSpec] = &[
    row("clustername", "", Text, "", Group::Engine, ENGINE),
    row("rbdname", "", Text, "", Group::Engine, ENGINE),
    row("pool", "", Text, "", Group::Engine, ENGINE),
    row("clientname", "", Text, "", Group::Engine, ENGINE),
    row("busy_poll", "", Bool, "0", Group::Engine, ENGINE),
];

const ENGINE: super::Effect = Nothing("its engine is not simulated, which is said of the job");
const POLLED: super::Effect = Unsupported("completions are not polled: interrupts end requests");
const UNCACHED: super::Effect = Unsupported("pages stay in the cache");
const NOWAIT: super::Effect = Unsupported("requests wait where the kernel would return EAGAIN");
const SAME_IO: super::Effect =
    Nothing("block I/O is the same; io_cost_ns covers the processor time");

/// An option of an engine that Debian does not build: its rules are not
/// checked.
const fn unchecked(name: &'static str) -> OptionSpec {
    row(name, "", OptionalText, "", Group::Engine, ENGINE)
}

const DFS: &[OptionSpec] = &[
    unchecked("pool"),
    unchecked("cont"),
    unchecked("chunk_size"),
    unchecked("object_class"),
    unchecked("svcl"),
];

const HTTP: &[OptionSpec] = &[
    unchecked("https"),
    unchecked("http_host"),
    unchecked("http_user"),
    unchecked("http_pass"),
    unchecked("http_s3_key"),
    unchecked("http_s3_keyid"),
    unchecked("http_s3_region"),
    unchecked("http_s3_sse_customer_key"),
    unchecked("http_s3_sse_customer_algorithm"),
    unchecked("http_s3_storage_class"),
    unchecked("http_swift_auth_token"),
    unchecked("http_mode"),
    unchecked("http_verbose"),
];

const LIBCUFILE: &[OptionSpec] = &[unchecked("gpu_dev_ids"), unchecked("cuda_io")];

const LIBRPMA: &[OptionSpec] = &[
    unchecked("serverip"),
    unchecked("port"),
    unchecked("direct_write_to_pmem"),
    unchecked("busy_wait_polling"),
];

const NFS: &[OptionSpec] = &[unchecked("nfs_url")];
