// SPDX-License-Identifier: MIT OR Apache-2.0
//! blklab, a laboratory for Linux block-I/O latency: plan, run, compare.
