// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of compilebench.

use super::bench::{Bench, Operation, Plan};
use super::calls::{
    Call, Contents, Entry, Mode, clean, delete_tree, read_tree, stat_tree, walk_files, write_set,
    writes,
};
use super::rates::Rates;
use super::shape::{Set, Shape};
use std::collections::BTreeMap;

const BUFFER: u64 = 262_144;

/// Directories that list in order of the shape's numbers.
fn by_number(entry: Entry) -> (u64, u64) {
    match entry {
        Entry::File(i) | Entry::Directory(i) => (0, u64::from(i)),
    }
}

/// Gives the calls of an operation on a tree.
type Operate<'a> = dyn Fn(&Contents, &mut dyn FnMut(Call)) + 'a;

#[test]
fn the_sets_have_the_published_numbers_of_files_and_bytes() {
    let shape = Shape::recorded();
    for (set, files, bytes, blocks) in [
        (Set::Unpatched, 21280, 233_176_153, 69238),
        (Set::Patch, 6136, 114_997_799, 31237),
        (Set::CompileUnpatched, 3263, 713_696_760, 175_893),
        (Set::CompilePatched, 2573, 725_190_942, 178_450),
    ] {
        let all = shape.files_of(set);
        assert_eq!(all.len(), files, "{set:?}");
        assert_eq!(all.iter().map(|f| f.1).sum::<u64>(), bytes, "{set:?}");
        let in_blocks: u64 = all.iter().map(|f| f.1.div_ceil(4096)).sum();
        assert_eq!(in_blocks, blocks, "{set:?}");
    }
    let patch = shape.files_of(Set::Patch);
    let new = |f: &&(u32, u64)| shape.files[f.0 as usize].size_in(Set::Unpatched).is_none();
    assert_eq!(patch.iter().filter(new).count(), 610);
}

/// The shape is that of the recorded tables.
#[test]
fn the_shape_is_that_of_the_recorded_tables() {
    let Some(table) = blklab_testkit::shared("data/compilebench/files.csv") else {
        return;
    };
    let table = std::fs::read_to_string(table).expect("a text");
    let shape = Shape::recorded();
    assert_eq!(table.lines().count() - 1, shape.files.len());
    let sets = [
        Set::Unpatched,
        Set::Patch,
        Set::CompileUnpatched,
        Set::CompilePatched,
    ];
    for (line, f) in table.lines().skip(1).zip(&shape.files) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[1].parse(), Ok(f.directory), "{line}");
        assert_eq!(fields[2].parse(), Ok(f.name_length), "{line}");
        assert_eq!(fields[3].parse().ok(), f.order, "{line}");
        for (i, set) in sets.into_iter().enumerate() {
            assert_eq!(fields[4 + i].parse().ok(), f.size_in(set), "{line}");
        }
    }
}

#[test]
fn a_file_is_written_in_whole_blocks_and_the_rest_at_its_close() {
    for (size, expected) in [
        (300_000, vec![262_144, 36_864, 992]),
        (4055, vec![4055]),
        (0, vec![]),
        (4096, vec![4096]),
        (8192 + 1, vec![8192, 1]),
        (262_144, vec![262_144]),
    ] {
        assert_eq!(writes(size, BUFFER).collect::<Vec<_>>(), expected, "{size}");
    }
    // A buffer that is no multiple of the stream's.
    assert_eq!(writes(10_000, 3000).collect::<Vec<_>>(), [4096, 4096, 1808]);
}

#[test]
fn one_creation_has_the_expected_calls() {
    let shape = Shape::recorded();
    let files = shape.files_of(Set::Unpatched);
    let (mut body, mut tail, mut made, mut opened, mut bytes) = (0, 0, 0, 0, 0);
    write_set(&shape, &files, Mode::Create, BUFFER, |call| match call {
        Call::Write(n) => {
            bytes += n;
            *(if n % 4096 == 0 { &mut body } else { &mut tail }) += 1;
        }
        Call::MakeDirectory(_) => made += 1,
        Call::OpenAppend(_) => opened += 1,
        _ => {}
    });
    assert_eq!((opened, tail, made), (21280, 21280, 1264));
    let large = files.iter().filter(|f| f.1 >= 4096).count();
    assert_eq!(large, 10594);
    let extra: u64 = files.iter().map(|f| (f.1.max(1) - 1) / BUFFER).sum();
    assert!(extra >= 29);
    // The last piece of a large file may be smaller than a block.
    let no_body = |f: &&(u32, u64)| f.1 > BUFFER && f.1 % BUFFER < 4096;
    let short = files.iter().filter(no_body).count() as u64;
    assert_eq!(body, large as u64 + extra - short);
    assert_eq!(bytes, 233_176_153);
}

#[test]
fn trees_hold_what_the_operations_leave() {
    let shape = Shape::recorded();
    let mut tree = Contents::empty(&shape);
    let apply = |tree: &mut Contents, f: &Operate<'_>| {
        let before = tree.clone();
        let mut open = None;
        f(&before, &mut |call| tree.apply(call, &mut open));
    };
    let write = |set: Set, mode| {
        let files = shape.files_of(set);
        let shape = &shape;
        move |_: &Contents, call: &mut dyn FnMut(Call)| write_set(shape, &files, mode, BUFFER, call)
    };
    apply(&mut tree, &write(Set::Unpatched, Mode::Create));
    assert_eq!(tree.bytes(), 233_176_153);
    for mode in [Mode::Overwrite, Mode::Replace] {
        let mut patched = tree.clone();
        apply(&mut patched, &write(Set::Patch, mode));
        assert_eq!(
            patched.files.iter().flatten().count(),
            21280 + 610,
            "{mode:?}"
        );
        let sizes = |i: usize| shape.files[i].size_in(Set::Patch);
        let fits = |(i, size): (usize, &Option<u64>)| sizes(i).is_none_or(|s| *size == Some(s));
        assert!(patched.files.iter().enumerate().all(fits), "{mode:?}");
    }
    let before = tree.clone();
    apply(&mut tree, &write(Set::CompileUnpatched, Mode::Create));
    assert_eq!(tree.bytes(), 233_176_153 + 713_696_760);
    apply(&mut tree, &|_, call| {
        clean(&shape, Set::CompileUnpatched, call);
    });
    assert_eq!(tree.files, before.files);
    let mut read = 0;
    apply(&mut tree, &|t, call| {
        read_tree(&shape, t, &by_number, BUFFER, |c| {
            call(c);
        });
    });
    read_tree(&shape, &tree, &by_number, BUFFER, |c| {
        read += u32::from(matches!(c, Call::ReadAll(_)));
    });
    assert_eq!(read, 21280);
    let mut stats = BTreeMap::new();
    stat_tree(&shape, &tree, &by_number, |c| {
        if let Call::Stat(f) = c {
            *stats.entry(f).or_insert(0) += 1;
        }
    });
    let backwards = |entry| {
        let (_, place) = by_number(entry);
        (u64::MAX - place, 0)
    };
    let forth = walk_files(&shape, &tree, &by_number);
    let back = walk_files(&shape, &tree, &backwards);
    assert_eq!((forth.len(), back.len()), (21280, 21280));
    assert_ne!(forth, back, "a listing's order is the walk's");
    assert_eq!(stats.len(), 21280);
    assert!(stats.values().all(|n| *n == 2), "by the walk and by itself");
    apply(&mut tree, &|t, call| {
        delete_tree(&shape, t, &by_number, call);
    });
    assert_eq!(tree.bytes(), 0);
}

#[test]
fn the_ordering_phase_writes_1024_mib() {
    let shape = Shape::recorded();
    let mut bench = Bench::new(Plan {
        initial: 0,
        runs: 0,
        ordering: true,
        sync: true,
        seed: 555,
    });
    let mut bytes = 0;
    let mut steps = 0;
    while let Some(step) = bench.next_step() {
        steps += 1;
        if let Operation::Write(set, _) = step.operation {
            bytes += shape.files_of(set).iter().map(|f| f.1).sum::<u64>();
        }
    }
    assert_eq!(steps, 6);
    // 1023.6 MiB.
    assert_eq!(bytes, 233_176_153 + 114_997_799 + 725_190_942);
}

#[test]
fn random_operations_fit_the_state_of_their_trees() {
    let plan = Plan {
        initial: 3,
        runs: 500,
        ordering: false,
        sync: true,
        seed: 555,
    };
    let mut bench = Bench::new(plan);
    let mut state: BTreeMap<u64, (bool, bool)> = BTreeMap::new();
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut steps = 0;
    while let Some(step) = bench.next_step() {
        steps += 1;
        *seen.entry(step.name).or_insert(0) += 1;
        assert_eq!(step.sync, steps > 3);
        let Some(tree) = state.get_mut(&step.tree) else {
            assert_eq!(step.name, "create");
            state.insert(step.tree, (false, false));
            continue;
        };
        match step.operation {
            Operation::Write(Set::Patch, _) => {
                assert!(!std::mem::replace(&mut tree.0, true), "patched twice");
            }
            Operation::Write(set, _) => {
                let expected = [Set::CompileUnpatched, Set::CompilePatched][usize::from(tree.0)];
                assert_eq!(set, expected);
                assert!(!std::mem::replace(&mut tree.1, true), "compiled twice");
            }
            Operation::Clean(_) => assert!(std::mem::replace(&mut tree.1, false)),
            Operation::Delete => assert!(state.remove(&step.tree).is_some()),
            Operation::Read | Operation::Stat => {}
        }
    }
    assert_eq!(steps, 503);
    assert_eq!(seen.len(), 7, "{seen:?}");
    let again: Vec<_> = std::iter::from_fn({
        let mut bench = Bench::new(plan);
        move || bench.next_step()
    })
    .collect();
    assert_eq!(again.len(), 503, "the same again");
}

#[test]
fn rates_are_averaged_not_totalled() {
    let mut rates = Rates::default();
    let bytes = (222.37 * f64::from(1 << 20)) as u64;
    rates.add(bytes, 10_000_000_000);
    rates.add(bytes, 40_000_000_000);
    assert_eq!((rates.mean_mib_s() * 100.0).round(), 1390.0);
    assert_eq!(rates.mean_s(), 25.0);
    assert_eq!(rates.count(), 2);
}
