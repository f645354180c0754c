// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changed in Kyber. What limited depths count is the block layer's.

blklab_kernel::features! {
    /// What a release does.
    pub(super) struct Features {
        /// The limit is the queue's `async_depth`, for all but sync reads. Before,
        /// three quarters of the tags, for async requests.
        pub(super) limit_is_of_queue: bool = false,
    }

    /// One entry for each release at which [`Features::of`] changes. Read were 5.10, 6.1,
    /// 6.12 and 7.3.
    pub(super) const CHANGES = {
        "7.0": "the limit is the queue's async_depth, and sync writes have it, too",
            "block/kyber-iosched.c" => {
            limit_is_of_queue: true,
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_kernel::KernelVersion;

    #[test]
    fn every_change_is_in_the_table() {
        let era = KernelVersion::new(5, 0)..KernelVersion::FOREVER;
        blklab_kernel::check_changes(CHANGES, era, Features::of);
    }
}
