// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit processes: closed loops and timetables of bios.
