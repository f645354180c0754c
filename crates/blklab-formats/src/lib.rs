// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte and text layouts of traces: blktrace, blkparse, the compact form.
