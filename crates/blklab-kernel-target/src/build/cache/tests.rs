// SPDX-License-Identifier: MIT OR Apache-2.0

use super::{About, Cache, Engine};
use crate::build::command::{Step, Watch};
use crate::build::recipe::{self, HZ};
use blklab_types::{ErrorKind, Hz};
use std::sync::atomic::{AtomicBool, Ordering};

fn keep(cache: &Cache, release: &str, key: &str) {
    keep_of_hz(cache, release, key, HZ);
}

fn keep_of_hz(cache: &Cache, release: &str, key: &str, hz: Hz) {
    let about = About {
        release: release.to_owned(),
        source: "linux-source".to_owned(),
        key: key.to_owned(),
        recipe: recipe::name(hz),
        hz: hz.0,
    };
    let linux = cache.root.join("made");
    std::fs::create_dir_all(&cache.root).expect("a folder");
    std::fs::write(&linux, "kernel").expect("a file");
    let built = cache
        .keep(&about, &[(&linux, "linux")])
        .expect("it is kept");
    assert!(built.program().exists());
}

#[test]
fn kernels_are_found_by_release_and_name_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("cache"));
    let none = cache.find("7.3").expect_err("there is none");
    assert_eq!(none.kind, ErrorKind::UnknownName);
    keep(&cache, "7.3.4", "aa");
    keep(&cache, "6.12.1", "bb");
    assert_eq!(cache.find("7.3").expect("it is there").name, "7.3.4-aa");
    assert_eq!(cache.find("6.12.1").expect("it is there").name, "6.12.1-bb");
    let other = cache.find("6.1").expect_err("6.12 is another").to_string();
    assert!(other.contains("valid: 6.12.1-bb, 7.3.4-aa"), "{other}");
    // Incomplete ones are not there.
    let broken = cache.folder().join(".new-7.4");
    std::fs::create_dir(&broken).expect("a folder");
    assert_eq!(cache.kernels().len(), 2);
    let kernel = cache.find("7.3.4-aa").expect("by its name");
    assert!(kernel.bytes() > 6);
    cache.remove(&kernel).expect("it is removed");
    assert_eq!(cache.kernels().len(), 1);
}

#[test]
fn a_release_is_never_somebodys_tree_nor_built_in_an_old_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("cache"));
    keep(&cache, "7.3.4", "aa");
    assert_eq!(cache.of_release("7.3", HZ).expect("it is there").key, "aa");
    let about = cache.folder().join("7.3.4-aa").join(super::ABOUT);
    let text = std::fs::read_to_string(&about).expect("a text");
    let of_tree = text.replace("\"linux-source\"", "\"/home/linux\"");
    std::fs::write(&about, of_tree).expect("a text");
    assert_eq!(cache.of_release("7.3", HZ), None);
    std::fs::write(&about, text.replace(&recipe::name(HZ), "old")).expect("a text");
    assert_eq!(cache.of_release("7.3", HZ), None);
    assert_eq!(cache.find("7.3").expect("by its release").key, "aa");
}

#[test]
fn kernels_of_a_release_differ_by_their_tick() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("cache"));
    keep(&cache, "7.3.4", "aa");
    keep_of_hz(&cache, "7.3.4", "bb", Hz(1000));
    let of_hz = |hz: u32| cache.of_release("7.3", Hz(hz)).map(|k| k.key);
    assert_eq!(of_hz(250).as_deref(), Some("aa"));
    assert_eq!(of_hz(1000).as_deref(), Some("bb"));
    assert_eq!(of_hz(100), None);
    // Who knows of no other tick reads what says nothing of one.
    let usual = cache.folder().join("7.3.4-aa").join(super::ABOUT);
    let text = std::fs::read_to_string(usual).expect("a text");
    assert!(!text.contains("hz"), "{text}");
}

#[test]
fn who_builds_is_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().to_owned());
    let stop = AtomicBool::new(false);
    let mut steps = Vec::new();
    let mut step = |s| {
        steps.push(s);
        // Nobody waits for ever.
        stop.store(true, Ordering::Relaxed);
    };
    let mut watch = Watch {
        step: &mut step,
        stop: &stop,
    };
    let first = cache
        .lock(Engine::Uml, &mut watch)
        .expect("nobody else builds");
    let second = cache
        .lock(Engine::Uml, &mut watch)
        .expect_err("it waits, and is ended");
    assert_eq!(second.kind, ErrorKind::Interrupted);
    drop(first);
    stop.store(false, Ordering::Relaxed);
    cache
        .lock(Engine::Uml, &mut watch)
        .expect("nobody builds any more");
    assert_eq!(steps, [Step::Waiting]);
}
