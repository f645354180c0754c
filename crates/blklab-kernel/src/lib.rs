// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about Linux by version, as data: releases, tunables, HZ.
