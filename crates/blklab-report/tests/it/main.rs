// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages as browsers show them, and the front end that they are made with.

mod web;
