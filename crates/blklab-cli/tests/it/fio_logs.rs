// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that jobs write about themselves: names and contents as fio 3.33's.

use crate::support::Folder;

#[test]
fn a_log_without_a_prefix_is_named_after_its_job() {
    let f = Folder::new();
    f.write(
        "l.fio",
        "[global]\nioengine=null\nsize=16k\nwrite_bw_log\nwrite_lat_log\n[a]\nnumjobs=2\n\
         [b]\nname=bee\n[c]\nwrite_bw_log=foo\nwrite_lat_log=\n",
    );
    f.ok(&["run", "l.fio"]);
    let mut logs: Vec<String> = f.names(".");
    logs.retain(|name| name.contains("_bw") || name.contains("_clat"));
    assert_eq!(
        logs,
        [
            "a_bw.1.log",
            "a_bw.2.log",
            "a_clat.1.log",
            "a_clat.2.log",
            "bee_bw.3.log",
            "bee_clat.3.log",
            "c_clat.4.log",
            "foo_bw.4.log",
        ]
    );
}

#[test]
fn jobs_share_a_log_where_they_name_one_file() {
    let f = Folder::new();
    f.write(
        "m.fio",
        "[global]\nioengine=null\nsize=16k\nwrite_lat_log=foo\nper_job_logs=0\n[a]\nnumjobs=2\n\
         [b]\n",
    );
    f.ok(&["run", "m.fio"]);
    assert_eq!(f.read("foo_lat.log").lines().count(), 12);
}

/// fio opens the file in append mode, so each job adds a whole log.
#[test]
fn jobs_append_to_one_iolog_in_the_order_in_which_they_end() {
    let f = Folder::new();
    f.write(
        "i.fio",
        "[global]\nrw=randread\ndirect=1\nwrite_iolog=io.log\n[slow]\nsize=64k\n[quick]\nsize=8k\n\
         [last]\nstonewall\nsize=8k\n",
    );
    f.ok(&["run", "i.fio"]);
    let text = f.read("io.log");
    let heads: Vec<usize> = (0..)
        .zip(text.lines())
        .filter_map(|(at, line)| (line == "fio version 3 iolog").then_some(at))
        .collect();
    assert_eq!(heads, [0, 6, 26], "{text}");
    let count = |name: &str| text.lines().filter(|l| l.contains(name)).count();
    assert_eq!([count(" slow.0.0 "), count(" quick.0.0 ")], [19, 5]);
    assert!(text.lines().nth(1).is_some_and(|l| l.contains("quick")));
}
