// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux error numbers: the names that `ignore_error` takes, and what the C
//! library says of them.
//!
//! Source: errno(3), strerror(3). fio 3.33 knows the first 34 by name.

/// Linux: input/output error.
pub const EIO: i32 = 5;
/// Linux: no space left on device.
pub const ENOSPC: i32 = 28;
/// Linux: illegal byte sequence (contents are not what was written).
pub const EILSEQ: i32 = 84;
/// Linux: connection timed out (a latency limit was exceeded).
pub const ETIMEDOUT: i32 = 110;

/// Number, name and text.
const ERRORS: &[(i32, &str, &str)] = &[
    (1, "EPERM", "Operation not permitted"),
    (2, "ENOENT", "No such file or directory"),
    (3, "ESRCH", "No such process"),
    (4, "EINTR", "Interrupted system call"),
    (EIO, "EIO", "Input/output error"),
    (6, "ENXIO", "No such device or address"),
    (7, "E2BIG", "Argument list too long"),
    (8, "ENOEXEC", "Exec format error"),
    (9, "EBADF", "Bad file descriptor"),
    (10, "ECHILD", "No child processes"),
    (11, "EAGAIN", "Resource temporarily unavailable"),
    (12, "ENOMEM", "Cannot allocate memory"),
    (13, "EACCES", "Permission denied"),
    (14, "EFAULT", "Bad address"),
    (15, "ENOTBLK", "Block device required"),
    (16, "EBUSY", "Device or resource busy"),
    (17, "EEXIST", "File exists"),
    (18, "EXDEV", "Invalid cross-device link"),
    (19, "ENODEV", "No such device"),
    (20, "ENOTDIR", "Not a directory"),
    (21, "EISDIR", "Is a directory"),
    (22, "EINVAL", "Invalid argument"),
    (23, "ENFILE", "Too many open files in system"),
    (24, "EMFILE", "Too many open files"),
    (25, "ENOTTY", "Inappropriate ioctl for device"),
    (26, "ETXTBSY", "Text file busy"),
    (27, "EFBIG", "File too large"),
    (ENOSPC, "ENOSPC", "No space left on device"),
    (29, "ESPIPE", "Illegal seek"),
    (30, "EROFS", "Read-only file system"),
    (31, "EMLINK", "Too many links"),
    (32, "EPIPE", "Broken pipe"),
    (33, "EDOM", "Numerical argument out of domain"),
    (34, "ERANGE", "Numerical result out of range"),
    (
        EILSEQ,
        "EILSEQ",
        "Invalid or incomplete multibyte or wide character",
    ),
    (95, "EOPNOTSUPP", "Operation not supported"),
    (ETIMEDOUT, "ETIMEDOUT", "Connection timed out"),
];

/// Largest number that fio knows by name.
const NAMED_MAX: i32 = 34;

/// What an error number means.
pub fn text(errno: i32) -> &'static str {
    let known = ERRORS.iter().find(|(number, ..)| *number == errno);
    known.map_or("Unknown error", |(_, _, text)| text)
}

/// The number of a name, if fio knows it.
pub(crate) fn number(name: &str) -> Option<i32> {
    let mut known = ERRORS.iter().filter(|(number, ..)| *number <= NAMED_MAX);
    known
        .find(|(_, known, _)| *known == name)
        .map(|(number, ..)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fio_knows_the_first_by_name() {
        let named = ERRORS.iter().filter(|(number, ..)| *number <= NAMED_MAX);
        assert!(named.map(|(number, ..)| *number).eq(1..=NAMED_MAX));
        assert_eq!(number("EINVAL"), Some(22));
        assert_eq!(number("ETIMEDOUT"), None);
        assert_eq!(text(22), "Invalid argument");
        assert_eq!(text(4000), "Unknown error");
    }
}
