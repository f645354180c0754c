// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job files against what fio 3.33, and some against what fio 1.24, did with them.

mod differential;
mod log;
mod modes;
mod options;
mod replay;
mod rules_of_2009;
mod timing;
mod vectors;
