// SPDX-License-Identifier: MIT OR Apache-2.0
//! What our program says became of recorded processes.

use crate::failed::failed;
use blklab_types::{Error, Pid};

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kernel) struct End {
    /// The pid that it had in the machine.
    pub(in crate::kernel) pid: Pid,
    /// Its first error; 0: none.
    error: i32,
    /// Discards that the device did not take.
    untaken: u64,
}

/// A line for each process, in their order; none if they are not so many.
pub(in crate::kernel) fn ends(text: &str, nr_processes: usize) -> Option<Vec<End>> {
    let all: Option<Vec<End>> = text.lines().map(end).collect();
    all.filter(|all| all.len() == nr_processes)
}

fn end(line: &str) -> Option<End> {
    let mut numbers = line.split(' ');
    let end = End {
        pid: numbers.next()?.parse().ok()?,
        error: numbers.next()?.parse().ok()?,
        untaken: numbers.next()?.parse().ok()?,
    };
    numbers.next().is_none().then_some(end)
}

/// What a reader of the result should know of the ends.
///
/// # Errors
/// If the I/O of a process has failed: nobody would see it.
pub(in crate::kernel) fn check_ends(
    processes: &[(Pid, String)],
    ends: &[End],
) -> Result<Option<String>, Error> {
    for ((pid, name), end) in processes.iter().zip(ends) {
        if end.error != 0 {
            let error = std::io::Error::from_raw_os_error(end.error);
            return Err(failed(&format!(
                "process {name} ({pid}) has failed: {error}"
            )));
        }
    }
    let untaken: u64 = ends.iter().map(|end| end.untaken).sum();
    let what = "discards were left out: the device takes none, or not such ones";
    Ok((untaken > 0).then(|| format!("{untaken} {what}")))
}

#[cfg(test)]
mod tests {
    use super::{check_ends, ends};

    #[test]
    fn each_process_has_a_line() {
        assert_eq!(ends("", 1), None);
        assert_eq!(ends("7 0 0\n8 0\n", 2), None);
        let all = ends("7 0 2\n8 0 1\n", 2).expect("two ends");
        assert_eq!(all[1].pid, 8);
        let processes = [(70, "a".to_owned()), (80, "b".to_owned())];
        let told = check_ends(&processes, &all).expect("all went well");
        assert!(told.is_some_and(|note| note.starts_with("3 discards were left out")));
        let failed = ends("7 0 0\n8 5 0\n", 2).expect("two ends");
        let error = check_ends(&processes, &failed).expect_err("one has failed");
        assert!(error.to_string().contains("process b (80) has failed"));
    }
}
