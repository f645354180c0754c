// SPDX-License-Identifier: MIT OR Apache-2.0
//! What io.cost bills for an I/O, by the six numbers of `io.cost.model` (`calc_lcoefs`,
//! block/blk-iocost.c; docs/cgroups/iocost.md).

use crate::findings::Context;
use crate::findings::disk::Request;

/// Costs are counted by pages.
const PAGE_BYTES: u64 = 4096;

/// A group's I/O that begins further from the end of its last one is random.
const NEAR_SECTORS: u64 = (16 << 20) / 512;

/// A second, in the unit of prices.
const SECOND_PS: u64 = 1_000_000_000_000;

/// Prices of a direction, in ps of the device's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prices {
    page_ps: u64,
    sequential_ps: u64,
    random_ps: u64,
}

/// The prices of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    reads: Prices,
    writes: Prices,
}

impl Model {
    /// That of a context which gives all six numbers.
    pub fn known(context: &Context) -> Option<Model> {
        let said = context.io_cost_model()?;
        let number = |key: &str| {
            let of_key = |word: &str| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok();
            let number: Option<u64> = said.split_whitespace().find_map(of_key);
            number.filter(|n| *n > 0)
        };
        let prices = |side: &str| {
            let pages = number(&format!("{side}bps"))?.div_ceil(PAGE_BYTES);
            let page_ps = SECOND_PS / pages;
            let io_ps = |key: &str| {
                let each = SECOND_PS / number(&format!("{side}{key}"))?;
                Some(each.saturating_sub(page_ps))
            };
            Some(Prices {
                page_ps,
                sequential_ps: io_ps("seqiops")?,
                random_ps: io_ps("randiops")?,
            })
        };
        Some(Model {
            reads: prices("r")?,
            writes: prices("w")?,
        })
    }

    /// What a request costs whose group's last one ended at a sector, in ns of the device's time.
    pub fn price_ns(&self, r: &Request, last_end: Option<u64>) -> u64 {
        if !(r.is_read() || r.is_write()) || r.life.bytes == 0 {
            return 0;
        }
        let prices = if r.is_read() { self.reads } else { self.writes };
        let pages = (r.life.bytes / PAGE_BYTES).max(1);
        let is_near = last_end.is_none_or(|end| end.abs_diff(r.life.sector) <= NEAR_SECTORS);
        let begin_ps = if is_near {
            prices.sequential_ps
        } else {
            prices.random_ps
        };
        begin_ps.saturating_add(pages.saturating_mul(prices.page_ps)) / 1000
    }
}
