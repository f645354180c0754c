// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorded shape of the source trees: directories, and for each file its
//! directory and its size in the four sets.
//!
//! Source: statistics of the data sets of compilebench 0.6 (trees of Linux
//! 2.6.20 and 2.6.21, clean and compiled), without names. They are kept in
//! `data/compilebench.shape` as numbers of seven bits per byte, lowest first,
//! the top bit on all but the last byte: the number of directories; for each its
//! parent's number plus 1 (0: none) and the length of its name; the number of
//! files; for each the difference of its directory from that of the file before
//! (zigzag), the length of its name, its place in the order of creation plus 1
//! (0: none), and per set its size plus 1 (0: not in the set).

/// The sets as compilebench reduces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The clean tree of 2.6.20.
    Unpatched = 0,
    /// What 2.6.21 changes or adds.
    Patch = 1,
    /// What compiling 2.6.20 adds.
    CompileUnpatched = 2,
    /// What compiling 2.6.21 adds or changes.
    CompilePatched = 3,
}

/// A directory; the first one is the root of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The directory that it is in.
    pub parent: Option<u32>,
    /// Characters of its name.
    pub name_length: u32,
}

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Its directory.
    pub directory: u32,
    /// Characters of its name.
    pub name_length: u32,
    /// Its place in the order in which the clean tree is created.
    pub order: Option<u32>,
    sizes: [Option<u64>; 4],
}

impl File {
    /// Its size in a set that it is in.
    pub fn size_in(&self, set: Set) -> Option<u64> {
        self.sizes[set as usize]
    }
}

/// A file's place in the order of all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u32, u32);

/// The shape of all trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The directories.
    pub directories: Vec<Directory>,
    /// The files.
    pub files: Vec<File>,
}

static RECORDED: &[u8] = include_bytes!("../../data/compilebench.shape");

impl Shape {
    /// The recorded shape.
    ///
    /// # Panics
    /// If the recorded data are damaged, which a test excludes.
    pub fn recorded() -> Shape {
        Shape::decode(RECORDED).expect("the recorded shape is whole")
    }

    /// Files of a set with their sizes, in order of creation where one is
    /// recorded, else in order of their numbers.
    pub fn files_of(&self, set: Set) -> Vec<(u32, u64)> {
        let all = self.files.iter().enumerate();
        let mut files: Vec<(u32, u64)> = all
            .filter_map(|(i, f)| Some((i as u32, f.size_in(set)?)))
            .collect();
        files.sort_by_key(|&(i, _)| self.place(i));
        files
    }

    /// A file's place among all: those of the clean tree first, as created,
    /// then the others by number.
    pub(crate) fn place(&self, file: u32) -> Place {
        Place(self.files[file as usize].order.unwrap_or(u32::MAX), file)
    }

    fn decode(bytes: &[u8]) -> Option<Shape> {
        let mut numbers = Numbers(bytes);
        let nr_directories = numbers.next()?;
        let mut directories = Vec::new();
        for _ in 0..nr_directories {
            directories.push(Directory {
                parent: less_one(numbers.next()?).map(|p| p as u32),
                name_length: numbers.next()? as u32,
            });
        }
        let nr_files = numbers.next()?;
        let mut files = Vec::new();
        let mut directory: u64 = 0;
        for _ in 0..nr_files {
            let step = numbers.next()?;
            let step = (step >> 1) as i64 ^ -((step & 1) as i64);
            directory = directory.checked_add_signed(step)?;
            let name_length = numbers.next()? as u32;
            let order = less_one(numbers.next()?).map(|o| o as u32);
            let mut sizes = [None; 4];
            for size in &mut sizes {
                *size = less_one(numbers.next()?);
            }
            files.push(File {
                directory: directory as u32,
                name_length,
                order,
                sizes,
            });
        }
        Some(Shape { directories, files })
    }
}

fn less_one(n: u64) -> Option<u64> {
    n.checked_sub(1)
}

struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }
}
