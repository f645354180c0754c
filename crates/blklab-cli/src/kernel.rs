// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab kernel`.

use crate::Outcome;
use crate::args::KernelCommand;
use crate::interrupt::Interrupt;
use crate::output::bytes;
use crate::progress::Watcher;
use anyhow::Result;
use blklab::types::{Error, Hz};
use blklab_kernel_target::{
    Added, Built, Cache, Engine, HZ, Source, Step, Watch, add, build, fetch,
};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) fn kernel(command: &KernelCommand) -> Result<Outcome> {
    let cache = Cache::of_user()?;
    match command {
        KernelCommand::Build {
            releases,
            kernel_source,
            hz,
        } => build_all(&cache, releases, kernel_source.as_deref(), Hz(*hz)),
        KernelCommand::Fetch { releases, flavour } => {
            let mut releases = releases.iter();
            bring(&mut |watch| {
                let release = releases.next()?;
                Some(fetch(&cache, release, flavour, watch))
            })
        }
        KernelCommand::Add { image, modules } => {
            let mut added = Some(Added {
                image: image.clone(),
                modules: modules.clone(),
            });
            bring(&mut |watch| Some(add(&cache, &added.take()?, watch)))
        }
        KernelCommand::List => list(&cache),
        KernelCommand::Remove { names } => remove(&cache, names),
    }
}

fn build_all(cache: &Cache, releases: &[String], tree: Option<&Path>, hz: Hz) -> Result<Outcome> {
    let sources = match tree {
        Some(tree) => vec![Source::Tree(tree.to_owned())],
        None => {
            let sources = releases.iter().map(|r| Source::release(r));
            sources.collect::<Result<Vec<Source>, _>>()?
        }
    };
    let mut sources = sources.iter();
    bring(&mut |watch| Some(build(cache, sources.next()?, hz, watch)))
}

/// Brings kernels, one after the other, and shows each.
fn bring(next: &mut dyn FnMut(&mut Watch<'_>) -> Option<Result<Built, Error>>) -> Result<Outcome> {
    let interrupt = Interrupt::watch();
    loop {
        let shown = Arc::new(Mutex::new(Step::Fetching));
        let watcher = Watcher::building(Arc::clone(&shown));
        let mut step = |step| *shown.lock().unwrap_or_else(PoisonError::into_inner) = step;
        let mut watch = Watch {
            step: &mut step,
            stop: &interrupt.stop,
        };
        let brought = next(&mut watch);
        drop(watcher);
        match brought {
            None => return Ok(Outcome::Done),
            Some(Ok(kernel)) => print(&kernel)?,
            Some(Err(_)) if interrupt.happened() => return Ok(Outcome::Interrupted),
            Some(Err(e)) => return Err(e.into()),
        }
    }
}

fn print(kernel: &Built) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let (name, size) = (&kernel.name, bytes(kernel.bytes() as f64));
    let engine = kernel.engine.name();
    write!(out, "{name}  {engine}  {size}  {}", kernel.source)?;
    if kernel.hz != HZ {
        write!(out, "  {} Hz", kernel.hz.0)?;
    }
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

fn list(cache: &Cache) -> Result<Outcome> {
    for engine in Engine::ALL {
        for kernel in cache.kernels_of(engine) {
            print(&kernel)?;
        }
    }
    Ok(Outcome::Done)
}

/// The kernel of a name, or of a release: one that was built before one that was fetched.
fn find(cache: &Cache, name: &str) -> Result<Built, Error> {
    let built = cache.find_for(Engine::Uml, name);
    built.or_else(|e| cache.find_for(Engine::Qemu, name).map_err(|_| e))
}

/// Removes all of them, or nothing if one is not there.
fn remove(cache: &Cache, names: &[String]) -> Result<Outcome> {
    let kernels = names.iter().map(|name| find(cache, name));
    let kernels = kernels.collect::<Result<Vec<Built>, _>>()?;
    let mut out = std::io::stdout().lock();
    for kernel in kernels {
        cache.remove(&kernel)?;
        writeln!(out, "removed {}", kernel.name)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}
