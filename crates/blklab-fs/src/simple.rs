// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filesystem `extents`: space in ascending order, and no metadata.

use crate::cache::{FsError, PageCache};
use crate::config::Config;
use crate::features::LargeFolios;
use crate::file::FileId;
use crate::host::Host;
use crate::layout::Allocator;
use crate::mount::Shared;
use crate::ops::Ops;
use crate::state::State;
use blklab_types::PAGE_BYTES;

/// The filesystem.
pub(crate) type ExtentLayout = Shared<Allocator>;

impl ExtentLayout {
    /// Makes sure that the file has a place for its bytes up to `end`.
    fn ensure<H: Host>(&self, cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        let room = self.on(cache).with(|s| {
            let file = &mut s.state.files[id.idx()];
            let pages = end.div_ceil(PAGE_BYTES);
            s.volume.ensure(&mut file.extents, pages, file.grows)
        });
        room.then_some(()).ok_or(FsError::NoSpace)
    }
}

impl<H: Host> Ops<H> for ExtentLayout {
    type Options = ();

    fn mount(_options: (), config: &Config, _state: &mut State) -> Result<ExtentLayout, String> {
        Ok(Shared::new(Allocator::new(config.layout)))
    }

    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| {
            let extents = &mut s.state.files[id.idx()].extents;
            s.volume.ensure(extents, pages, false)
        })
    }

    fn sets_space_aside(&self) -> bool {
        true
    }

    fn overwrites_with_fua(&self) -> bool {
        true
    }

    fn has_large_folios(&self, config: &Config) -> bool {
        config.features.large_folios >= LargeFolios::Xfs
    }

    async fn begin_write(&self, cache: &PageCache<H>, id: FileId, end: u64) -> Result<(), FsError> {
        self.ensure(cache, id, end)
    }

    async fn place_direct(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        end: u64,
    ) -> Result<(), FsError> {
        self.ensure(cache, id, end)
    }

    fn flushes_after_fsync(&self) -> bool {
        true
    }
}
