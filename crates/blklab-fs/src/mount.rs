// SPDX-License-Identifier: MIT OR Apache-2.0
//! A volume and the page cache on top of it: what the functions of a filesystem
//! work on.
//!
//! A filesystem is a value that owns its volume ([`Shared`]). Each call gives it
//! the page cache; both together are a [`Mount`], in which tasks run and sleep.
//! What must not sleep works on a [`View`]: the volume and the state of the page
//! cache, borrowed for one step.

use blklab_pagecache::{FileId, Host, PageCache, State};
use blklab_types::TaskId;
use std::cell::{Ref, RefCell, RefMut};
use std::future::Future;
use std::ops::{Deref, DerefMut, Index, IndexMut};
use std::rc::Rc;

/// What a filesystem knows of each file, by its number: the defaults for one that
/// it has not met.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerFile<T> {
    known: Vec<T>,
    unknown: T,
}

impl<T: Default> PerFile<T> {
    /// The file is gone.
    pub(crate) fn forget(&mut self, id: FileId) {
        if let Some(known) = self.known.get_mut(id.idx()) {
            *known = T::default();
        }
    }
}

impl<T> Index<FileId> for PerFile<T> {
    type Output = T;
    fn index(&self, id: FileId) -> &T {
        self.known.get(id.idx()).unwrap_or(&self.unknown)
    }
}

impl<T: Default> IndexMut<FileId> for PerFile<T> {
    fn index_mut(&mut self, id: FileId) -> &mut T {
        if self.known.len() <= id.idx() {
            self.known.resize_with(id.idx() + 1, T::default);
        }
        &mut self.known[id.idx()]
    }
}

/// A volume that tasks share.
#[derive(Debug)]
pub struct Shared<V>(Rc<RefCell<V>>);

impl<V> Shared<V> {
    /// Takes a volume.
    pub(crate) fn new(volume: V) -> Shared<V> {
        Shared(Rc::new(RefCell::new(volume)))
    }

    /// The volume, looked at without the page cache.
    pub(crate) fn volume(&self) -> Ref<'_, V> {
        self.0.borrow()
    }

    /// The volume, to be changed without the page cache.
    pub(crate) fn volume_mut(&self) -> RefMut<'_, V> {
        self.0.borrow_mut()
    }

    /// The volume under this page cache.
    pub(crate) fn on<'a, H: Host>(&'a self, cache: &'a PageCache<H>) -> Mount<'a, H, V> {
        Mount {
            cache,
            volume: self,
        }
    }

    /// Runs `f` on the volume and a state that is borrowed already.
    pub(crate) fn with<R>(&self, state: &mut State, f: impl FnOnce(&mut View<'_, V>) -> R) -> R {
        let volume = &mut *self.0.borrow_mut();
        f(&mut View { state, volume })
    }
}

impl<V> Clone for Shared<V> {
    fn clone(&self) -> Shared<V> {
        Shared(Rc::clone(&self.0))
    }
}

/// A volume and the state of the page cache, for one step that does not sleep.
#[derive(Debug)]
pub(crate) struct View<'a, V> {
    pub(crate) state: &'a mut State,
    pub(crate) volume: &'a mut V,
}

impl<V> Deref for View<'_, V> {
    type Target = State;
    fn deref(&self) -> &State {
        self.state
    }
}

impl<V> DerefMut for View<'_, V> {
    fn deref_mut(&mut self) -> &mut State {
        self.state
    }
}

/// A volume and the page cache on top of it.
pub(crate) struct Mount<'a, H: Host, V> {
    cache: &'a PageCache<H>,
    volume: &'a Shared<V>,
}

impl<H: Host, V> Clone for Mount<'_, H, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host, V> Copy for Mount<'_, H, V> {}

impl<H: Host, V> Deref for Mount<'_, H, V> {
    type Target = PageCache<H>;
    fn deref(&self) -> &PageCache<H> {
        self.cache
    }
}

impl<H: Host, V: 'static> Mount<'_, H, V> {
    /// Runs `f` on the volume and the shared state. Not re-entrant: `f` must not
    /// use the mount, the page cache or the host.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut View<'_, V>) -> R) -> R {
        self.cache.with(|state| self.volume.with(state, f))
    }

    /// Runs `f` and wakes the tasks that it names, in order.
    pub(crate) fn waking(&self, f: impl FnOnce(&mut View<'_, V>, &mut Vec<TaskId>)) {
        self.cache
            .waking(|state, wake| self.volume.with(state, |view| f(view, wake)));
    }

    /// Starts a thread of the filesystem's own.
    pub(crate) fn spawn<F>(&self, name: &'static str, body: impl FnOnce(Kept<H, V>) -> F) -> TaskId
    where
        F: Future<Output = ()> + 'static,
    {
        let kept = Kept {
            cache: self.cache.clone(),
            volume: self.volume.clone(),
        };
        self.cache.host.spawn(name, Box::pin(body(kept)))
    }
}

/// A mount that a task keeps.
pub(crate) struct Kept<H: Host, V> {
    cache: PageCache<H>,
    volume: Shared<V>,
}

impl<H: Host, V> Kept<H, V> {
    /// The mount.
    pub(crate) fn mount(&self) -> Mount<'_, H, V> {
        self.volume.on(&self.cache)
    }
}
