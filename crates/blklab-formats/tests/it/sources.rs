// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where traces come from: compressed files, pipes, links.

use crate::synthetic::{Said, header, send, trace};
use blklab_formats::TraceFile;
use blklab_formats::blktrace::{BlktraceStream, BlktraceWriter};
use blklab_trace::TraceSource as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Events in the traces here: more than one buffer of every reader.
const EVENTS: usize = 4_000;

fn said(nr_cpus: u64) -> Vec<Said> {
    let mut said = trace(3, EVENTS, nr_cpus, 1);
    // As text such a message is several lines.
    said.retain(|s| !matches!(s, Said::Message(_, text) if text.contains('\n')));
    said
}

fn nr_events(path: &Path) -> u64 {
    let mut file = TraceFile::open(path).unwrap();
    file.send_all(&mut Vec::new()).unwrap();
    assert!(file.counts().is_clean(), "{:?}", file.counts());
    file.counts().events
}

fn error(path: &Path) -> String {
    let read = TraceFile::open(path).and_then(|mut file| file.send_all(&mut Vec::new()));
    read.unwrap_err().to_string()
}

fn binary() -> Vec<u8> {
    let mut stream = BlktraceStream::new(Vec::new());
    send(&said(2), &mut stream);
    stream.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// xz as the tool makes it; none where there is no such tool.
fn xz(bytes: &[u8], options: &str) -> Option<Vec<u8>> {
    let spawned = Command::new("xz")
        .args(["-c", options])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        blklab_testkit::skipped("xz is not installed");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Some(output.stdout)
}

/// Every format in every compression, whatever the file is called.
#[test]
fn compressed_traces_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let said = said(2);
    let text = crate::readers::print(&said);
    let compact = crate::compact::write(&said, &header(2));
    for (format, plain) in [("binary", binary()), ("text", text), ("compact", compact)] {
        let path = dir.path().join(format);
        fs::write(&path, &plain).unwrap();
        let expected = nr_events(&path);
        assert!(expected > 3_000);
        let forms = [
            Some(gzip(&plain)),
            Some(zstd(&plain)),
            xz(&plain, "-6"),
            // Several members, frames and streams are one file.
            Some([gzip(&plain[..1000]), gzip(&plain[1000..])].concat()),
            Some([zstd(&plain[..1000]), zstd(&plain[1000..])].concat()),
            xz(&plain[..1000], "-1")
                .zip(xz(&plain[1000..], "-1"))
                .map(|(a, b)| [a, b].concat()),
        ];
        for (idx, bytes) in forms.into_iter().enumerate() {
            let Some(bytes) = bytes else { continue };
            fs::write(&path, &bytes).unwrap();
            assert_eq!(nr_events(&path), expected, "{format} {idx}");
            assert!(TraceFile::is_trace(&path));
            // A cut file says so and names itself.
            fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
            let error = error(&path);
            assert!(
                error.contains(&*path.to_string_lossy()) && error.contains("cut"),
                "{format} {idx}: {error}"
            );
        }
    }
}

#[test]
fn compressed_files_of_cpus() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("t");
    let mut writer = BlktraceWriter::create(&base, &header(3)).unwrap();
    send(&said(3), &mut writer);
    writer.finish().unwrap();
    let expected = nr_events(&base);
    let file = |cpu: &str| dir.path().join(format!("t.blktrace.{cpu}"));
    let bytes = fs::read(file("1")).unwrap();
    fs::write(file("1.gz"), gzip(&bytes)).unwrap();
    let twice = error(&base);
    assert!(twice.contains("CPU 1 has two files"), "{twice}");
    fs::remove_file(file("1")).unwrap();
    fs::write(file("2.zst"), zstd(&fs::read(file("2")).unwrap())).unwrap();
    fs::remove_file(file("2")).unwrap();
    for name in [base.clone(), file("0"), file("1.gz"), file("2.zst")] {
        assert_eq!(nr_events(&name), expected, "{}", name.display());
    }
}

#[test]
fn damaged_compressed_data_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    for (bytes, name) in [(gzip(&binary()), "gzip"), (zstd(&binary()), "zstd")] {
        let mut bad = bytes.clone();
        // In front of the end: content that decodes, with another checksum.
        let at = bad.len() - 3;
        bad[at] ^= 0xff;
        fs::write(&path, &bad).unwrap();
        let error = error(&path);
        assert!(error.contains(&format!("damaged {name} data")), "{error}");
    }
}

/// A window or dictionary beyond any real one is refused before it is
/// allocated, and a long text of few bytes takes no memory.
#[test]
fn bombs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    // Frame header: no checksum, no single segment, window of 2^41 bytes.
    fs::write(&path, [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 1, 0, 0]).unwrap();
    let zstd_error = error(&path);
    assert!(
        zstd_error.contains("need more than 128 MiB"),
        "{zstd_error}"
    );
    if let Some(bytes) = xz(b"8,0", "--lzma2=dict=1GiB") {
        fs::write(&path, bytes).unwrap();
        let xz_error = error(&path);
        assert!(xz_error.contains("need more than 128 MiB"), "{xz_error}");
    }
    let line = b"8,0 0 1 0.000000001 1 Q R 8 + 8 [a]\n".as_slice();
    let zeros = vec![0; 64 << 20];
    fs::write(&path, zstd(&[line, &zeros].concat())).unwrap();
    let mut file = TraceFile::open(&path).unwrap();
    let used = allocation_counter::measure(|| {
        file.send_all(&mut Vec::new()).unwrap();
    });
    assert_eq!(
        (file.counts().events, file.counts().skipped_bytes),
        (1, 64 << 20)
    );
    assert!(used.bytes_max < 16 << 20, "{used:?}");
}

/// A pipe is read once, from its beginning to its end.
#[test]
fn pipes_are_read_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo.blktrace.0");
    let said = said(2);
    let regular = dir.path().join("regular");
    fs::write(&regular, binary()).unwrap();
    let expected = nr_events(&regular);
    for bytes in [
        binary(),
        zstd(&binary()),
        crate::readers::print(&said),
        crate::compact::write(&said, &header(2)),
    ] {
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let to = path.clone();
        let feeder = std::thread::spawn(move || {
            File::create(to).unwrap().write_all(&bytes).unwrap();
        });
        assert_eq!(nr_events(&path), expected);
        feeder.join().unwrap();
        fs::remove_file(&path).unwrap();
    }
}

/// Whether an output is an input is asked of the file, not of its name.
#[test]
fn links_are_the_same_file() {
    use blklab_formats::FileId;
    let dir = tempfile::tempdir().unwrap();
    let (path, link, soft) = (
        dir.path().join("t.blktrace.0"),
        dir.path().join("hard"),
        dir.path().join("soft"),
    );
    fs::write(&path, binary()).unwrap();
    fs::hard_link(&path, &link).unwrap();
    std::os::unix::fs::symlink(&path, &soft).unwrap();
    let file = TraceFile::open(&dir.path().join("t")).unwrap();
    assert_eq!(file.cpu_files(), [path]);
    for name in [link, soft] {
        assert!(file.inputs().contains(&FileId::at(&name).unwrap()));
    }
    assert_eq!(FileId::at(&dir.path().join("none")), None);
}

/// One line of the last CPU there can be: 30 MB were laid out for those before
/// it.
#[test]
fn a_number_of_a_cpu_takes_no_memory() {
    let line = b"8,0 65535 1 0.5 1 Q R 8 + 8 [a]\n";
    let used = allocation_counter::measure(|| {
        let mut reader = blklab_formats::blkparse::BlkparseReader::new(&line[..], "t");
        let options = blklab_formats::blkparse::BlkparseOptions::default();
        let mut writer = blklab_formats::blkparse::BlkparseWriter::new(Vec::new(), options);
        reader.send_all(&mut writer).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert!(text.contains("CPU65535 (trace):") && !text.contains("CPU0"));
    });
    assert!(used.bytes_max < 2 << 20, "{used:?}");
}

#[test]
fn a_byte_order_mark_costs_no_row() {
    const ROWS: &str = "419,W,8192,16384,1577808144360767\n725,R,512,4096,1577808144360813\n";
    let nr_events = |text: String| {
        let mut file = TraceFile::from_reader(std::io::Cursor::new(text), "x").unwrap();
        file.send_all(&mut Vec::new()).unwrap();
        assert!(file.counts().is_clean(), "{:?}", file.counts());
        file.counts().events
    };
    assert_eq!(nr_events(format!("\u{feff}{ROWS}")), 2);
    assert_eq!(nr_events(ROWS.to_owned()), 2);
}

#[test]
fn an_empty_trace_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.blktrace.0");
    fs::write(&path, "").unwrap();
    for path in [path, dir.path().join("t")] {
        assert!(
            error(&path).ends_with("an empty trace: nothing was recorded, or its files were cut")
        );
        let mut file = TraceFile::open(&path).unwrap();
        let options = blklab_formats::blkparse::BlkparseOptions::default();
        let mut out = blklab_formats::blkparse::BlkparseWriter::new(Vec::new(), options);
        assert!(file.print_to(&mut out).is_err());
    }
}
