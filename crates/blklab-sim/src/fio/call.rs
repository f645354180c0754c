// SPDX-License-Identifier: MIT OR Apache-2.0
//! What direct I/Os take of the processor in their system calls.

use blklab_types::{PAGE_BYTES, Span};

/// Processor times of direct I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallCost {
    /// One of up to a page.
    pub(crate) each: Span,
    /// Every further page.
    pub(crate) page: Span,
}

impl CallCost {
    /// Whether any do.
    pub(crate) fn takes_time(self) -> bool {
        self != CallCost::default()
    }

    /// Of some I/Os with so many bytes in all.
    pub(crate) fn span(self, nr_ios: usize, bytes: u64) -> Span {
        let nr_ios = nr_ios as u64;
        let further = bytes.div_ceil(PAGE_BYTES).saturating_sub(nr_ios);
        Span(self.each.ns() * nr_ios + self.page.ns() * further)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_is_in_the_call() {
        let cost = CallCost {
            each: Span(4550),
            page: Span(350),
        };
        assert_eq!(cost.span(1, 4096), Span(4550));
        assert_eq!(cost.span(1, 512), Span(4550));
        assert_eq!(cost.span(2, 1 << 20), Span(9100 + 254 * 350));
    }
}
