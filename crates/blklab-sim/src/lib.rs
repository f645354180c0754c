// SPDX-License-Identifier: MIT OR Apache-2.0
//! The deterministic simulation that wires the models together.
