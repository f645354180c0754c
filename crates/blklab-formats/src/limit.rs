// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room for one open file per CPU: systems let a process have 1024 at first,
//! and more if it asks (`getrlimit(2)`).

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Opens a file through `open`. Where the process has as many as it may, the
/// limit is raised to the highest allowed and `open` tried again.
pub(crate) fn with_room<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match open() {
        Err(e) if e.raw_os_error() == Some(Errno::MFILE.raw_os_error()) && raise() => open(),
        opened => opened,
    }
}

/// Raises the limit; false if it is at its highest.
fn raise() -> bool {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    current != maximum && setrlimit(Resource::Nofile, raised).is_ok()
}
