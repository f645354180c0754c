// SPDX-License-Identifier: MIT OR Apache-2.0
//! NTFS-3G of 2008: NTFS in a user-space daemon behind FUSE
//! (fs/fuse of 2.6.26 to 2.6.28).
//!
//! ```text
//! system call ─► message ─► daemon, one after another ─► pages of the device
//!      ▲                        │                              │
//!      └──── reply ◄────────────┘              pdflush ◄───────┘
//! ```
//!
//! A call that FUSE cannot answer from what it has cached becomes a message to
//! one user-space task, and the caller sleeps for the reply. A write is a
//! message per page. The daemon reads and writes the block device like any
//! file: what it writes is dirty in the pages of the device and goes to the
//! disk as the page cache likes; a block that it changes in part and that is
//! not in memory is read first. There is no journal and no order. File data
//! are dirty only there; FUSE's own pages of a file are clean copies, filled
//! by writes of whole pages and by reads, with read-ahead.
//!
//! Records, clusters and the entries of directories are real; sizes of
//! attributes are estimates ([`index`]). The index is in order of the hash that
//! stands for the name; NTFS's is alphabetical.
//!
//! Left out: compression, sparse files, fragmented records' second record,
//! extended attributes, look-ups of names that are not there, messages that
//! nobody waits for but the release of a file.
//! The flusher's bios hold many pages of the device; the kernel makes one bio
//! per page, which the queue merges.

mod clusters;
mod daemon;
mod fuse;
mod index;
mod kind;
mod options;

pub(crate) use kind::NTFS_3G;
pub use options::{NtfsCosts, NtfsOptions};

use crate::mount::{Shared, View};
use blklab_pagecache::{
    Config, DirectIo, Extent, Extents, Fd, File, FileId, FreeSpace, FsError, FsTraits, Host,
    Mountable, OSync, OpenFile, Ops, PageCache, RaState, State, WriteControl,
};
use blklab_types::{PAGE_BYTES, PAGE_SECTORS, Time};
use clusters::{Clusters, OWN_RECORDS, Records};
use fuse::{Fuse, Op};
use index::{Entry, Index};
use std::ops::Range;

/// NTFS-3G as a filesystem.
pub(crate) type NtfsFs = Shared<Volume>;

/// The record of the top directory.
const ROOT_RECORD: u64 = 5;
/// Longest file that is inside its record.
const RESIDENT_BYTES: u64 = 700;

/// A volume.
#[derive(Debug)]
pub struct Volume {
    options: NtfsOptions,
    clusters: Clusters,
    records: Records,
    start_sector: u64,
    /// The device, and the daemon's descriptor of it.
    device: FileId,
    fd: Fd,
    fuse: Fuse,
    /// By file.
    nodes: Vec<Node>,
}

/// What a file has on such a volume.
#[derive(Clone, Debug, Default)]
struct Node {
    record: u32,
    /// Its name and attributes are trusted until then.
    valid_until: Time,
    /// It was made by a call that also opened it.
    opened: bool,
    /// Its record is free already.
    gone: bool,
    /// Where its data lie. [`File::extents`] stays empty: the kernel does not
    /// know.
    extents: Extents,
    index: Option<Box<Index>>,
}

impl Volume {
    /// A volume on these sectors; `device` is the file of the disk.
    ///
    /// # Errors
    /// If it is too small.
    pub(crate) fn new(
        options: NtfsOptions,
        sectors: Range<u64>,
        device: FileId,
        fd: Fd,
    ) -> Result<Volume, String> {
        Ok(Volume {
            options,
            clusters: Clusters::new(sectors.end.saturating_sub(sectors.start))?,
            records: Records::default(),
            start_sector: sectors.start,
            device,
            fd,
            fuse: Fuse::default(),
            nodes: Vec::new(),
        })
    }

    /// The disk as the daemon sees it.
    pub(crate) fn device_file(&self) -> File {
        let pages = self.clusters.count();
        let mut file = File::new(pages * PAGE_BYTES);
        file.extents = Extents::raw(self.start_sector, pages);
        file
    }

    /// The daemon's descriptor.
    pub(crate) fn device_open(&self, read_ahead_pages: u64) -> OpenFile {
        OpenFile {
            file: self.device,
            sync: OSync::None,
            ra: RaState::new(read_ahead_pages),
            random: false,
            prev_end: 0,
            wrote: false,
            mapped_as: blklab_pagecache::Advice::Normal,
        }
    }

    /// Where the data of a file of the volume lie.
    pub(crate) fn extents(&self, id: FileId) -> Option<&Extents> {
        let node = self.nodes.get(id.idx()).filter(|n| n.record > 0)?;
        Some(&node.extents)
    }

    /// Says which file the top directory is.
    pub(crate) fn set_root(&mut self, id: FileId) {
        let node = self.node(id);
        node.record = ROOT_RECORD as u32;
        node.index = Some(Box::default());
        node.valid_until = Time(u64::MAX);
    }

    fn node(&mut self, id: FileId) -> &mut Node {
        if self.nodes.len() <= id.idx() {
            self.nodes.resize(id.idx() + 1, Node::default());
        }
        &mut self.nodes[id.idx()]
    }

    fn sector(&self, cluster: u64) -> u64 {
        self.start_sector + cluster * PAGE_SECTORS
    }

    fn cluster(&self, sector: u64) -> u64 {
        (sector - self.start_sector) / PAGE_SECTORS
    }

    /// The cluster of a file's record.
    fn record_of(&mut self, id: FileId) -> u64 {
        let record = u64::from(self.node(id).record);
        self.clusters.record(record)
    }

    /// Free clusters, and files that can be made. The MFT does not shrink: its
    /// clusters that hold no record count as free.
    pub(crate) fn free(&self) -> FreeSpace {
        let mft = (self.clusters.records() - OWN_RECORDS) / clusters::RECORDS;
        let clusters = self.clusters.free() + mft - self.records.used_clusters();
        FreeSpace::new(clusters, clusters * clusters::RECORDS)
    }

    /// Puts an entry into a directory, for which there is room. Returns the clusters
    /// that change.
    fn add_entry(&mut self, directory: FileId, entry: Entry) -> Vec<u64> {
        let Volume {
            nodes, clusters, ..
        } = self;
        let index = nodes[directory.idx()].index.as_mut();
        let index = index.expect("a directory has an index");
        let (mut changed, mut maps) = (Vec::new(), Vec::new());
        let new = || {
            let cluster = clusters.take(None, 1);
            let cluster = cluster.expect("there are as many as entries need").start;
            maps.push(clusters.bitmap_of(cluster));
            cluster
        };
        index.insert(entry, new, &mut changed);
        changed.append(&mut maps);
        changed
    }

    /// Takes clusters for a file's pages up to one. `out` gets the clusters of
    /// the bitmap that change. False if there is no room for all.
    fn grow(&mut self, id: FileId, pages: u64, out: &mut Vec<u64>) -> bool {
        while self.node(id).extents.pages() < pages {
            let extents = &self.node(id).extents;
            let missing = pages - extents.pages();
            let last = extents.runs().last().copied();
            let behind = last.map(|e| self.cluster(e.sector) + e.pages - 1);
            let Some(run) = self.clusters.take(behind, missing) else {
                return false;
            };
            let sector = self.sector(run.start);
            self.node(id).extents.append(sector, run.end - run.start);
            let maps = self.clusters.bitmap_of(run.start)..=self.clusters.bitmap_of(run.end - 1);
            out.extend(maps);
        }
        true
    }
}

impl View<'_, Volume> {
    /// The entry of a file in its directory.
    fn ntfs_entry(&self, id: FileId) -> Entry {
        let name = self.files[id.idx()].name;
        Entry::new(name.hash, id.0, name.bytes)
    }

    /// Gives a file a record and its first pages clusters, as an earlier run
    /// left them; nothing is in the cache. False if the volume is full.
    fn ntfs_lay_out(&mut self, id: FileId, pages: u64) -> bool {
        let (root, entry) = (self.root, self.ntfs_entry(id));
        let resident = self.files[id.idx()].size_bytes <= RESIDENT_BYTES;
        let v = &mut *self.volume;
        // Two blocks of the index, and the cluster of four records.
        if v.clusters.free() < pages + 4 {
            return false;
        }
        let Some(record) = v.records.take(&mut v.clusters) else {
            return false;
        };
        v.node(id).record = record as u32;
        v.add_entry(root, entry);
        resident || v.grow(id, pages, &mut Vec::new())
    }
}

impl Mountable for NtfsFs {
    type Options = NtfsOptions;

    fn traits(_options: &NtfsOptions) -> FsTraits {
        FsTraits {
            direct_io: DirectIo::Refused,
            ..FsTraits::GENERIC
        }
    }

    fn mount(options: NtfsOptions, config: &Config, state: &mut State) -> Result<NtfsFs, String> {
        let device = state.next_file();
        let fd = Fd(state.open.len() as u32);
        let volume = Volume::new(options, config.layout.sectors(), device, fd)?;
        let mut file = volume.device_file();
        file.nr_open = 1;
        state.add_device(file);
        state
            .open
            .push(volume.device_open(config.read_ahead_pages()));
        Ok(Shared::new(volume))
    }
}

impl<H: Host> Ops<H> for NtfsFs {
    fn make_root(&self, state: &mut State) {
        let root = state.root;
        self.with(state, |s| s.volume.set_root(root));
    }

    fn extents_of(&self, id: FileId) -> Option<Vec<Extent>> {
        self.volume().extents(id).map(|e| e.runs().to_vec())
    }

    fn start(&self, cache: &PageCache<H>) {
        self.on(cache).ntfs_start();
    }

    fn lay_out(&self, state: &mut State, id: FileId, pages: u64) -> bool {
        self.with(state, |s| s.ntfs_lay_out(id, pages))
    }

    fn free_space(&self, _state: &mut State) -> Option<FreeSpace> {
        Some(self.volume().free())
    }

    async fn create(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).ntfs_create(directory, id).await
    }

    async fn look_up(
        &self,
        cache: &PageCache<H>,
        _directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).ntfs_look_up(id).await
    }

    async fn revalidate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).ntfs_revalidate(id).await
    }

    async fn opened(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).ntfs_open(id).await
    }

    async fn list(&self, cache: &PageCache<H>, directory: FileId) -> Result<(), FsError> {
        self.on(cache).ntfs_list(directory).await
    }

    fn list_key(&self, state: &mut State, id: FileId) -> u64 {
        u64::from(state.files[id.idx()].name.hash)
    }

    async fn remove_entry(
        &self,
        cache: &PageCache<H>,
        directory: FileId,
        id: FileId,
    ) -> Result<(), FsError> {
        self.on(cache).ntfs_ask(Op::Unlink { directory, id }).await
    }

    async fn remove_inode(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).ntfs_forget(id).await
    }

    async fn truncate(&self, cache: &PageCache<H>, id: FileId) -> Result<(), FsError> {
        self.on(cache).ntfs_ask(Op::Truncate { id }).await
    }

    async fn close(&self, cache: &PageCache<H>, id: FileId, _wrote: bool) {
        self.on(cache).ntfs_close(id).await;
    }

    async fn dirty_written(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        run: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        self.on(cache).ntfs_write(id, run, end).await
    }

    async fn place_direct(
        &self,
        _cache: &PageCache<H>,
        _id: FileId,
        _end: u64,
    ) -> Result<(), FsError> {
        Err(FsError::NoDirect)
    }

    async fn writes_itself(
        &self,
        cache: &PageCache<H>,
        id: FileId,
        control: &mut WriteControl,
    ) -> bool {
        self.on(cache).ntfs_write_mapped(id, control);
        true
    }

    fn reads_itself(&self, cache: &PageCache<H>, id: FileId, run: Range<u64>) -> bool {
        self.on(cache).ntfs_read_pages(id, run);
        true
    }

    async fn load_mapping(&self, cache: &PageCache<H>, id: FileId, page: u64) {
        self.on(cache).ntfs_load_page(id, page).await;
    }

    async fn sync_metadata(&self, cache: &PageCache<H>, _id: FileId, _data_only: bool) {
        // An error of the device is reported for the device.
        let _ = self.on(cache).ntfs_ask(Op::Fsync).await;
    }
}
