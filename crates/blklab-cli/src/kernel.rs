// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab kernel`.

use crate::Outcome;
use crate::args::KernelCommand;
use crate::interrupt::Interrupt;
use crate::output::bytes;
use crate::progress::Watcher;
use anyhow::Result;
use blklab_kernel_target::{Built, Cache, Source, Step, Watch, build};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) fn kernel(command: &KernelCommand) -> Result<Outcome> {
    let cache = Cache::of_user()?;
    match command {
        KernelCommand::Build {
            releases,
            kernel_source,
        } => build_all(&cache, releases, kernel_source.as_deref()),
        KernelCommand::List => list(&cache),
        KernelCommand::Remove { names } => remove(&cache, names),
    }
}

fn build_all(cache: &Cache, releases: &[String], tree: Option<&Path>) -> Result<Outcome> {
    let sources = match tree {
        Some(tree) => vec![Source::Tree(tree.to_owned())],
        None => {
            let sources = releases.iter().map(|r| Source::release(r));
            sources.collect::<Result<Vec<Source>, _>>()?
        }
    };
    let interrupt = Interrupt::watch();
    for source in &sources {
        let shown = Arc::new(Mutex::new(Step::Fetching));
        let watcher = Watcher::building(Arc::clone(&shown));
        let mut step = |step| *shown.lock().unwrap_or_else(PoisonError::into_inner) = step;
        let mut watch = Watch {
            step: &mut step,
            stop: &interrupt.stop,
        };
        let built = build(cache, source, &mut watch);
        drop(watcher);
        match built {
            Ok(built) => print(&built)?,
            Err(_) if interrupt.happened() => return Ok(Outcome::Interrupted),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(Outcome::Done)
}

fn print(kernel: &Built) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let (name, size) = (&kernel.name, bytes(kernel.bytes() as f64));
    writeln!(out, "{name}  {size}  {}", kernel.source)?;
    out.flush()?;
    Ok(())
}

fn list(cache: &Cache) -> Result<Outcome> {
    for kernel in cache.kernels() {
        print(&kernel)?;
    }
    Ok(Outcome::Done)
}

/// Removes all of them, or nothing if one is not there.
fn remove(cache: &Cache, names: &[String]) -> Result<Outcome> {
    let kernels = names.iter().map(|name| cache.find(name));
    let kernels = kernels.collect::<Result<Vec<Built>, _>>()?;
    let mut out = std::io::stdout().lock();
    for kernel in kernels {
        cache.remove(&kernel)?;
        writeln!(out, "removed {}", kernel.name)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}
