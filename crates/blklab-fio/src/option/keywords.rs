// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that options with a choice take.
//!
//! Source: `fio --cmdhelp=NAME` of fio 3.33, in its order.

pub(super) const LOCKFILE: &[&str] = &["none", "exclusive", "readwrite"];
pub(super) const RW: &[&str] = &[
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "readwrite",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];
pub(super) const RW_SEQUENCER: &[&str] = &["sequential", "identical"];
pub(super) const IO_SUBMIT_MODE: &[&str] = &["inline", "offload"];
pub(super) const RANDOM_GENERATOR: &[&str] = &["tausworthe", "lfsr", "tausworthe64"];
pub(super) const RANDOM_DISTRIBUTION: &[&str] =
    &["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"];
pub(super) const FILE_SERVICE_TYPE: &[&str] = &[
    "random",
    "zipf",
    "pareto",
    "normal",
    "gauss",
    "roundrobin",
    "sequential",
];
pub(super) const FALLOCATE: &[&str] = &["none", "native", "posix", "keep", "truncate", "0", "1"];
pub(super) const FADVISE_HINT: &[&str] = &["0", "1", "random", "sequential"];
pub(super) const CLOCKSOURCE: &[&str] = &["gettimeofday", "clock_gettime", "cpu"];
pub(super) const MEM: &[&str] = &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"];
pub(super) const VERIFY: &[&str] = &[
    "0",
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern",
    "null",
];
pub(super) const ZONEMODE: &[&str] = &["none", "strided", "zbd"];
pub(super) const THINKTIME_BLOCKS_TYPE: &[&str] = &["complete", "issue"];
pub(super) const RATE_PROCESS: &[&str] = &["linear", "poisson"];
pub(super) const SYNC: &[&str] = &["none", "0", "sync", "1", "dsync"];
pub(super) const WRITE_HINT: &[&str] = &["none", "short", "medium", "long", "extreme"];
pub(super) const CPUS_ALLOWED_POLICY: &[&str] = &["shared", "split"];
pub(super) const EXIT_WHAT: &[&str] = &["group", "stonewall", "all"];
pub(super) const DEDUPE_MODE: &[&str] = &["repeat", "working_set"];
pub(super) const UNIFIED_RW_REPORTING: &[&str] = &["none", "mixed", "both", "0", "1", "2"];
pub(super) const CONTINUE_ON_ERROR: &[&str] =
    &["none", "read", "write", "io", "verify", "all", "0", "1"];
pub(super) const KB_BASE: &[&str] = &["1024", "1000"];
pub(super) const UNIT_BASE: &[&str] = &["0", "8", "1"];
pub(super) const STEADYSTATE: &[&str] = &["iops", "iops_slope", "bw", "bw_slope"];
