// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cat` of small files on cold caches.
//!
//! The directory is read block by block, then per file: its block of the inode
//! table if no file before it had the same, open, fstat, read in pieces until a
//! read returns nothing, close. Metadata are blocks of two further files; they
//! take time but are no I/Os of the program.
//!
//! Source: December 2012, "cat /etc/*" beside a writer.

use super::super::recorder::Recorder;
use crate::Machine;
use blklab_engine::Stream;
use blklab_fiostat::Ddir;
use blklab_pagecache::{Advice, FileId, FsError, PageCache};
use blklab_types::PAGE_BYTES;
use blklab_workload::scenario::{Cat, etc_sizes};

/// Why an open cannot fail.
const IS_THERE: &str = "the program's files are there, and nobody removes them";

/// The files on the disk.
pub(crate) struct Files {
    directory: FileId,
    inode_table: FileId,
    files: Vec<FileId>,
    plan: Cat,
}

impl Files {
    /// Puts directory, inode table and files on the disk.
    pub(crate) fn create(
        plan: &Cat,
        seed: u64,
        cache: &PageCache<Machine>,
    ) -> Result<Files, FsError> {
        let blocks = |n: u64| cache.create_laid_out(n * PAGE_BYTES);
        let (directory, inode_table) = (blocks(plan.directory_blocks)?, blocks(plan.inode_blocks)?);
        let sizes = etc_sizes(plan, seed).into_iter();
        let mut gaps = Stream::named(seed, "gaps of /etc");
        let files = sizes.map(|bytes| {
            let file = cache.create_laid_out(bytes)?;
            // What others have between them: a file that nobody reads.
            let gap = gaps.below(2 * plan.gap_bytes() + 1);
            if gap > 0 {
                cache.create_laid_out(gap)?;
            }
            Ok(file)
        });
        Ok(Files {
            directory,
            inode_table,
            files: files.collect::<Result<_, _>>()?,
            plan: plan.clone(),
        })
    }

    /// Reads them all.
    pub(crate) async fn read(self, m: &Machine, cache: &PageCache<Machine>, r: &Recorder<'_>) {
        for block in 0..self.plan.directory_blocks {
            r.system_call().await;
            metadata(cache, self.directory, block).await;
        }
        let mut inode_block_seen = None;
        for (i, file) in self.files.iter().enumerate() {
            let block = i as u64 * self.plan.inode_blocks / self.files.len() as u64;
            if self.plan.inode_blocks > 0 && inode_block_seen != Some(block) {
                metadata(cache, self.inode_table, block).await;
                inode_block_seen = Some(block);
            }
            r.system_call().await; // open
            let fd = cache.open(*file, false).expect(IS_THERE);
            r.system_call().await; // fstat
            let mut offset = 0;
            loop {
                let begin = m.now();
                r.system_call().await;
                let result = cache.read(fd, offset, self.plan.read_bytes).await;
                let bytes = result.unwrap_or(0);
                if result.is_err() || bytes > 0 {
                    let error = i32::from(result.is_err()) * 5;
                    r.moved(Ddir::Read, offset, bytes, begin, error);
                }
                if bytes == 0 {
                    break;
                }
                offset += bytes;
            }
            r.system_call().await; // close
        }
    }
}

/// One block of metadata, without reading ahead.
async fn metadata(cache: &PageCache<Machine>, file: FileId, block: u64) {
    let fd = cache.open(file, false).expect(IS_THERE);
    let _ = cache.fadvise(fd, 0, 0, Advice::Random).await;
    let _ = cache.read(fd, block * PAGE_BYTES, PAGE_BYTES).await;
}
