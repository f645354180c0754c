// SPDX-License-Identifier: MIT OR Apache-2.0
//! One experiment as data: workload, block stack, device.
