// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's statistics and result formats.
