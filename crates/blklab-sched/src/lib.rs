// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O schedulers, one module each.
