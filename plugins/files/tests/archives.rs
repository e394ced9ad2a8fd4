//! Archives of files: all of their rows, or what is wrong with them. Written as tar and its like write them, a header at a time.

mod common;

use common::{ask, directory, open, ping, tar};
use souk_connector_files::Session;
use souk_sdk::{Error, ErrorClass};
use tar::{EntryType, Header};

/// A block of zeros ends an archive.
const BLOCK_BYTES: usize = 512;
const END: [u8; 2 * BLOCK_BYTES] = [0; 2 * BLOCK_BYTES];
/// Ten rows.
const ROWS: &[u8] = b"n\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// An entry without an archive's end.
fn entry(kind: u8, path: &str, bytes: &[u8]) -> Vec<u8> {
    linked(kind, path, "", bytes)
}

fn linked(kind: u8, path: &str, to: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::new(kind));
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.as_old_mut().linkname[..to.len()].copy_from_slice(to.as_bytes());
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    let mut entry = [header.as_bytes(), bytes].concat();
    entry.resize(entry.len().next_multiple_of(BLOCK_BYTES), 0);
    entry
}

/// What is said of the next entry, as POSIX has it.
fn notes(notes: &[(&str, &[u8])]) -> Vec<u8> {
    let notes = notes.iter().map(|(key, value)| {
        let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        // Its length has its own digits in it.
        let len = rest.len() + (rest.len() + 3).to_string().len();
        [len.to_string().into_bytes(), rest].concat()
    });
    entry(b'x', "PaxHeaders/x", &notes.collect::<Vec<_>>().concat())
}

fn p1() -> Vec<u8> {
    entry(b'0', "orders.csv/p1.csv", ROWS)
}

fn p2() -> Vec<u8> {
    entry(b'0', "orders.csv/p2.csv", ROWS)
}

fn opened(archive: &[u8]) -> Result<Session, Error> {
    let directory = directory(&[("shop.tar", archive)]);
    let mut session = open(directory.path(), "shop.tar")?;
    ping(&mut session).map(|_| session)
}

fn count(archive: &[u8]) -> String {
    let mut session = opened(archive).unwrap();
    let answer = ask(&mut session, "SELECT count(*) FROM orders");
    answer.unwrap().lines().join(" ")
}

#[track_caller]
fn is_refused(archive: &[u8], code: &str, words: &str) {
    let error = opened(archive).err().unwrap();
    assert_eq!(error.code, code, "{error:?}");
    assert!(error.message.contains(words), "{error:?}");
}

#[test]
fn an_archive_that_was_cut_is_told() {
    let whole = [p1(), p2(), END.to_vec()].concat();
    assert_eq!(count(&whole), "20");
    let ends = whole.len() - END.len();
    for cut in [p1().len(), p1().len() + 100, ends - 1, ends, ends + 100] {
        is_refused(&whole[..cut], "archive_broken", "ends in the middle");
    }
    let named = [p1(), entry(b'L', "././@LongLink", b"orders.csv/p2.csv\0")].concat();
    is_refused(&named, "archive_broken", "ends in the middle");
    let named = [named, END.to_vec()].concat();
    is_refused(&named, "archive_broken", "ends in the middle");
}

/// GNU tar fills up to 10 KiB, others to a block, and some write one block of zeros.
#[test]
fn an_archive_may_be_filled_up() {
    let files = [p1(), p2()].concat();
    for zeros in [512, 600, 1_024, 10_240, 1 << 20] {
        let archive = [files.clone(), vec![0; zeros]].concat();
        assert_eq!(count(&archive), "20", "{zeros}");
    }
}

#[test]
fn archives_that_were_joined_are_told() {
    let first = [p1(), vec![0; 10_240]].concat();
    let second = [p2(), END.to_vec()].concat();
    is_refused(&[first, second].concat(), "archive_broken", "tar -A");
    let more = [p1(), END.to_vec(), vec![0; 1 << 20], b"x".to_vec()].concat();
    is_refused(&more, "archive_broken", "tar -A");
}

#[test]
fn links_in_place_of_a_tables_file_are_told() {
    let to = "orders.csv/p1.csv";
    let long = format!("orders.csv/{}.csv", "n".repeat(200));
    for link in [
        linked(b'1', "orders.csv/p2.csv", to, b""),
        linked(b'2', "orders.csv/p2.csv", "p1.csv", b""),
        linked(b'2', "more.csv", to, b""),
        // A folder of more files.
        linked(b'2', "orders.csv/2026", "/srv/2026", b""),
        [
            entry(b'L', "././@LongLink", long.as_bytes()),
            linked(b'1', "orders.csv/nnn", to, b""),
        ]
        .concat(),
    ] {
        let archive = [p1(), link, END.to_vec()].concat();
        is_refused(&archive, "archive_broken", "tar -h --hard-dereference");
    }
    let error = opened(
        &[
            p2(),
            linked(b'2', "orders.csv/p1.csv", "p2.csv", b""),
            END.to_vec(),
        ]
        .concat(),
    );
    let error = error.err().unwrap();
    assert_eq!(error.class, ErrorClass::Source);
    assert_eq!(error.detail.as_deref(), Some("orders.csv/p1.csv"));
}

#[test]
fn links_that_hide_no_rows_are_left_out() {
    let link = linked(b'2', "orders.csv/p2.csv", "p1.csv", b"");
    let other = [
        linked(b'2', "README", "docs/README", b""),
        linked(b'2', "orders.csv/._p3.csv", "p1.csv", b""),
        linked(b'1', "orders.csv/_p3.csv", "orders.csv/p1.csv", b""),
        entry(b'6', "pipe", b""),
        entry(b'5', "orders.csv/", b""),
        entry(b'V', "orders of 2026.csv", b""),
        entry(b'0', "folder.csv/", b""),
    ]
    .concat();
    // `tar -cf shop.tar orders.csv orders.csv/p1.csv`: its second time it is a link to itself.
    let again = linked(b'1', "./orders.csv/p1.csv", "orders.csv/p1.csv", b"");
    let archive = [link, p1(), other, p2(), again, END.to_vec()].concat();
    assert_eq!(count(&archive), "20");
}

#[test]
fn what_is_no_plain_file_is_told() {
    let sparse = entry(b'S', "orders.csv/p2.csv", b"");
    let archive = [p1(), sparse, END.to_vec()].concat();
    is_refused(&archive, "archive_broken", "without -S");
    let packed = |name: (&str, &[u8])| {
        let notes = notes(&[("GNU.sparse.major", b"1"), name]);
        let file = entry(b'0', "GNUSparseFile.7/p2.csv", b"1\n0\n10\n");
        [p1(), notes, file, END.to_vec()].concat()
    };
    let archive = packed(("GNU.sparse.name", b"orders.csv/p2.csv"));
    is_refused(&archive, "archive_broken", "without -S");
    let archive = packed(("GNU.sparse.name", b"notes.txt"));
    assert_eq!(count(&archive), "10");
    let archive = [p1(), entry(b'6', "orders.csv/p2.csv", b""), END.to_vec()].concat();
    is_refused(&archive, "archive_broken", "no file");
}

/// A file of which an archive has only the places that are not empty has their list in blocks of its own.
#[test]
fn files_behind_a_sparse_one_are_read() {
    let mut header = Header::from_byte_slice(&entry(b'S', "disk.img", b"")).clone();
    header.as_gnu_mut().unwrap().isextended[0] = 1;
    header.set_cksum();
    let mut list = [[0; BLOCK_BYTES], [0; BLOCK_BYTES]];
    list[0][504] = 1;
    let archive = [header.as_bytes(), list.concat().as_slice(), &p1(), &END].concat();
    assert_eq!(count(&archive), "10");
}

#[test]
fn archives_of_nothing_say_so() {
    is_refused(b"", "archive_empty", "empty");
    is_refused(&END, "archive_empty", "empty");
    is_refused(&[0; 10_240], "archive_empty", "empty");
    let folder = entry(b'5', "shop/", b"");
    let readme = entry(b'0', "README.md", b"hello");
    let link = linked(b'2', "README", "README.md", b"");
    let archive = [folder, readme, link, END.to_vec()].concat();
    is_refused(&archive, "unknown_format", "of the archive's files");
}

#[test]
fn long_names_are_read() {
    let name = format!("{}/orders.csv", "n".repeat(300));
    let nul = format!("{name}\0");
    // A value of these may have any bytes.
    let mtime: (&str, &[u8]) = ("mtime", b"1.5");
    let attribute: (&str, &[u8]) = ("SCHILY.xattr.user.x", b"a\n9 b\n\0\xff");
    for notes in [
        entry(b'L', "././@LongLink", nul.as_bytes()),
        notes(&[mtime, ("path", name.as_bytes())]),
        notes(&[attribute, ("path", name.as_bytes())]),
    ] {
        let archive = [notes, entry(b'0', "short", ROWS), END.to_vec()].concat();
        assert_eq!(count(&archive), "10");
    }
    // Nine rows, whatever the header says.
    let notes = notes(&[("size", b"20"), ("path", name.as_bytes())]);
    let archive = [notes, entry(b'0', "short", ROWS), END.to_vec()].concat();
    assert_eq!(count(&archive), "9");
    let notes = entry(b'x', "PaxHeaders/x", b"30 path=orders.csv\n");
    let archive = [notes, entry(b'0', "short", ROWS), END.to_vec()].concat();
    is_refused(&archive, "archive_broken", "damaged");
}

#[test]
fn names_that_are_no_text_are_told() {
    let mut header = Header::from_byte_slice(&p2()[..BLOCK_BYTES]).clone();
    header.as_old_mut().name[0] = 0xfc;
    header.set_size(0);
    header.set_cksum();
    let archive = [&p1(), header.as_bytes().as_slice(), &END].concat();
    is_refused(&archive, "archive_broken", "UTF-8");
}

/// Each header is read by itself, whatever lies between them.
#[test]
fn an_archive_of_many_files_is_opened_by_its_headers() {
    let names: Vec<String> = (0..9_000).map(|n| format!("notes/{n}.txt")).collect();
    let text = [b'x'; 1_500];
    let mut files: Vec<(&str, &[u8])> = vec![("orders.csv", ROWS)];
    files.extend(names.iter().map(|name| (name.as_str(), text.as_slice())));
    let directory = directory(&[("shop.tar", &tar(&files))]);
    let session = open(directory.path(), "shop.tar").unwrap();
    let read = session.bytes_read();
    assert!(read < 64 << 20, "{read}");
}

#[test]
fn all_names_of_an_archive_have_a_bound() {
    let archive = |files: usize| {
        let name = |n: usize| format!("{}/{n}.txt\0", "n".repeat(60_000));
        let long = (0..files).flat_map(|n| {
            let name = entry(b'L', "././@LongLink", name(n).as_bytes());
            [name, entry(b'0', "short", b"")]
        });
        let files: Vec<u8> = long.flatten().collect();
        [p1(), files, END.to_vec()].concat()
    };
    assert_eq!(count(&archive(250)), "10");
    is_refused(&archive(300), "too_many_files", "16 MiB");
}
