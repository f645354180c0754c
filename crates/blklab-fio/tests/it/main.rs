// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job files against what fio 3.33 did with them.

mod differential;
mod log;
mod timing;
mod vectors;
