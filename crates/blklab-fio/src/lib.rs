// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio job files: parsed, expanded, and turned into the I/Os that fio 3.33 issues.
