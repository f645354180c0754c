// SPDX-License-Identifier: MIT OR Apache-2.0
//! What compilebench does to one tree, as system calls.
//!
//! Files are C streams with a buffer of 4096 bytes: of each piece that the
//! program writes (at most its own buffer, 256 KiB), the part that fills whole
//! blocks is one `write`, and what remains waits; at the close of the file it is
//! the last one.

use super::shape::{Set, Shape};

/// Buffer of a C stream.
const STREAM_BYTES: u64 = 4096;

/// A system call on a tree. Files and directories are numbers of the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Looks at a directory.
    StatDirectory(u32),
    /// Makes a directory.
    MakeDirectory(u32),
    /// Removes an empty directory.
    RemoveDirectory(u32),
    /// Lists a directory.
    List(u32),
    /// Looks at a file.
    Stat(u32),
    /// Opens a file to append, creating it if it is not there.
    OpenAppend(u32),
    /// Opens a file to read.
    OpenRead(u32),
    /// Looks at the open file.
    Fstat,
    /// Reads the open file to its end, so many bytes per call; the last call
    /// returns nothing.
    ReadAll(u64),
    /// Cuts the open file to nothing.
    Truncate,
    /// Moves the open file's position to the beginning.
    Rewind,
    /// Appends so many bytes to the open file.
    Write(u64),
    /// Closes the open file.
    Close,
    /// Removes a file.
    Unlink(u32),
}

/// The `write` calls of a file of that size, in bytes.
pub fn writes(size: u64, buffer_bytes: u64) -> impl Iterator<Item = u64> {
    let buffer = buffer_bytes.max(1);
    let mut left = size;
    let mut held = 0;
    let mut tail = false;
    std::iter::from_fn(move || {
        while left > 0 {
            let piece = left.min(buffer);
            left -= piece;
            let whole = (held + piece) / STREAM_BYTES * STREAM_BYTES;
            held = held + piece - whole;
            if whole > 0 {
                return Some(whole);
            }
        }
        let last = held > 0 && !tail;
        tail = true;
        last.then_some(held)
    })
}

/// How a set is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// New files.
    Create,
    /// Files may be there: they are read, cut to nothing, written again.
    Overwrite,
    /// Files may be there: they are removed first.
    Replace,
}

/// The calls that write a set of files, each given to `call`.
pub fn write_set(
    shape: &Shape,
    files: &[(u32, u64)],
    mode: Mode,
    buffer_bytes: u64,
    mut call: impl FnMut(Call),
) {
    let mut seen = vec![false; shape.directories.len()];
    for &(file, size) in files {
        make_directories(
            shape,
            shape.files[file as usize].directory,
            &mut seen,
            &mut call,
        );
        if mode == Mode::Replace {
            call(Call::Unlink(file));
        }
        call(Call::OpenAppend(file));
        call(Call::Fstat);
        if mode == Mode::Overwrite {
            call(Call::ReadAll(buffer_bytes));
            call(Call::Truncate);
        }
        call(Call::Rewind);
        writes(size, buffer_bytes).for_each(|bytes| call(Call::Write(bytes)));
        call(Call::Close);
    }
}

/// Makes a directory and what it is in, from the top, unless seen.
fn make_directories(shape: &Shape, directory: u32, seen: &mut [bool], call: &mut impl FnMut(Call)) {
    if seen[directory as usize] {
        return;
    }
    if let Some(parent) = shape.directories[directory as usize].parent {
        make_directories(shape, parent, seen, call);
        call(Call::StatDirectory(directory));
    }
    call(Call::MakeDirectory(directory));
    seen[directory as usize] = true;
}

/// What a directory lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file of the shape.
    File(u32),
    /// A directory of the shape.
    Directory(u32),
}

/// Where an entry of a tree stands in its directory's listing.
pub type Order<'a> = dyn Fn(Entry) -> (u64, u64) + 'a;

/// What is in a tree: which files, and whether each directory is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Size of each file that is there.
    pub files: Vec<Option<u64>>,
    directories: Vec<bool>,
}

impl Contents {
    /// An empty tree of that shape.
    pub fn empty(shape: &Shape) -> Contents {
        Contents {
            files: vec![None; shape.files.len()],
            directories: vec![false; shape.directories.len()],
        }
    }

    /// After one call.
    pub fn apply(&mut self, call: Call, open: &mut Option<u32>) {
        match call {
            Call::MakeDirectory(d) => self.directories[d as usize] = true,
            Call::RemoveDirectory(d) => self.directories[d as usize] = false,
            Call::OpenAppend(f) => {
                self.files[f as usize].get_or_insert(0);
                *open = Some(f);
            }
            Call::OpenRead(f) => *open = Some(f),
            Call::Close => *open = None,
            Call::Unlink(f) => self.files[f as usize] = None,
            Call::Truncate => self.change(*open, |_| 0),
            Call::Write(bytes) => self.change(*open, |size| size + bytes),
            _ => {}
        }
    }

    fn change(&mut self, open: Option<u32>, f: impl Fn(u64) -> u64) {
        if let Some(size) = open.and_then(|o| self.files[o as usize].as_mut()) {
            *size = f(*size);
        }
    }

    /// Whether a directory is there.
    pub fn has_directory(&self, directory: u32) -> bool {
        self.directories[directory as usize]
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().flatten().sum()
    }

    /// Files of each directory and directories of each directory.
    fn listing(&self, shape: &Shape, order: &Order<'_>) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let mut files = vec![Vec::new(); shape.directories.len()];
        let mut directories = vec![Vec::new(); shape.directories.len()];
        for (i, f) in shape.files.iter().enumerate() {
            if self.files[i].is_some() {
                files[f.directory as usize].push(i as u32);
            }
        }
        for of_directory in &mut files {
            of_directory.sort_by_key(|&i| order(Entry::File(i)));
        }
        for (i, d) in shape.directories.iter().enumerate() {
            if let (true, Some(parent)) = (self.directories[i], d.parent) {
                directories[parent as usize].push(i as u32);
            }
        }
        for of_directory in &mut directories {
            of_directory.sort_by_key(|&d| order(Entry::Directory(d)));
        }
        (files, directories)
    }
}

/// The calls that read a tree: from the top, each directory listed, its entries
/// looked at, its files read.
pub fn read_tree(
    shape: &Shape,
    contents: &Contents,
    order: &Order<'_>,
    buffer_bytes: u64,
    mut call: impl FnMut(Call),
) {
    let (files, directories) = contents.listing(shape, order);
    let mut to_do = vec![0_u32];
    while let Some(d) = to_do.pop() {
        look_at(d, &files, &directories, &mut call);
        directories[d as usize]
            .iter()
            .for_each(|&s| call(Call::StatDirectory(s)));
        for &file in &files[d as usize] {
            call(Call::OpenRead(file));
            call(Call::Fstat);
            call(Call::ReadAll(buffer_bytes));
            call(Call::Close);
        }
        to_do.extend(directories[d as usize].iter().rev());
    }
}

/// The files of a tree in the order in which a walk from the top finds them
/// (compilebench's native order).
pub fn walk_files(shape: &Shape, contents: &Contents, order: &Order<'_>) -> Vec<u32> {
    let mut found = Vec::new();
    read_tree(shape, contents, order, 1, |call| {
        if let Call::OpenRead(file) = call {
            found.push(file);
        }
    });
    found
}

/// Lists a directory and looks at every entry.
fn look_at(d: u32, files: &[Vec<u32>], directories: &[Vec<u32>], call: &mut impl FnMut(Call)) {
    call(Call::List(d));
    files[d as usize].iter().for_each(|&f| call(Call::Stat(f)));
    directories[d as usize]
        .iter()
        .for_each(|&s| call(Call::StatDirectory(s)));
}

/// Directories from the bottom: what they hold before themselves.
fn bottom_up(directories: &[Vec<u32>]) -> Vec<u32> {
    let mut order = Vec::new();
    let mut to_do = vec![0_u32];
    while let Some(d) = to_do.pop() {
        order.push(d);
        to_do.extend(&directories[d as usize]);
    }
    order.reverse();
    order
}

/// The calls that look at every file and directory of a tree, bottom first.
pub fn stat_tree(
    shape: &Shape,
    contents: &Contents,
    order: &Order<'_>,
    mut call: impl FnMut(Call),
) {
    let (files, directories) = contents.listing(shape, order);
    for d in bottom_up(&directories) {
        look_at(d, &files, &directories, &mut call);
        files[d as usize].iter().for_each(|&f| call(Call::Stat(f)));
        directories[d as usize]
            .iter()
            .for_each(|&s| call(Call::StatDirectory(s)));
    }
}

/// The calls that empty a tree, bottom first; its root stays.
pub fn delete_tree(
    shape: &Shape,
    contents: &Contents,
    order: &Order<'_>,
    mut call: impl FnMut(Call),
) {
    let (files, directories) = contents.listing(shape, order);
    for d in bottom_up(&directories) {
        look_at(d, &files, &directories, &mut call);
        files[d as usize]
            .iter()
            .for_each(|&f| call(Call::Unlink(f)));
        directories[d as usize]
            .iter()
            .for_each(|&s| call(Call::RemoveDirectory(s)));
    }
}

/// The calls that remove what compiling made.
pub fn clean(shape: &Shape, set: Set, mut call: impl FnMut(Call)) {
    for (file, _) in shape.files_of(set) {
        call(Call::Unlink(file));
    }
}
