// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O lifecycles and latency splits, from trace events alone.
