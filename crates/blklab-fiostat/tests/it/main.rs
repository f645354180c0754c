// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares this crate with outputs recorded from fio 3.33
//! (`testdata/fiostat`, see its README).

mod formats;
mod record;
mod recorded;
mod replay;
