//! What an archive says of a file before the file's own header: GNU's long names, and POSIX's list of whatever there is to say.

use super::damaged;
use souk_sdk::Error;

#[derive(Default)]
pub struct Notes {
    /// Its whole name.
    pub path: Option<Vec<u8>>,
    /// Where it leads, if it is a link.
    pub link: Option<Vec<u8>>,
    /// How much of it the archive has.
    pub size: Option<u64>,
    /// Whether that is not all of it, but what is not zero, behind a list of where that belongs.
    pub is_sparse: bool,
    /// Whether anything was said.
    pub any: bool,
}

impl Notes {
    /// As GNU's header `L` says.
    pub fn path_is(&mut self, name: Vec<u8>) {
        self.any = true;
        self.path = Some(until_zero(name));
    }

    /// As GNU's header `K` says.
    pub fn link_is(&mut self, name: Vec<u8>) {
        self.any = true;
        self.link = Some(until_zero(name));
    }

    /// As a list says, `30 mtime=1792406400.123456789` in each line, of which the number is how long it is: values have any bytes.
    pub fn read(&mut self, mut list: &[u8]) -> Result<(), Error> {
        self.any = true;
        let mut plain = None;
        let mut of_sparse = None;
        while !list.is_empty() {
            let (key, value, rest) = note(list).ok_or_else(|| damaged("a list is none"))?;
            list = rest;
            self.is_sparse |= key.starts_with(b"GNU.sparse.");
            match key {
                b"path" => plain = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => {
                    self.size = Some(number(value).ok_or_else(|| damaged("a size is none"))?)
                }
                b"GNU.sparse.name" => of_sparse = Some(value.to_vec()),
                _ => {}
            }
        }
        // The other one is made up, for who knows nothing of these.
        self.path = self.path.take().or(of_sparse).or(plain);
        Ok(())
    }
}

/// The first note of a list, and what follows on it.
fn note(list: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = list.iter().position(|byte| *byte == b' ')?;
    let len = usize::try_from(number(&list[..space])?).ok()?;
    let (line, rest) = list.split_at_checked(len)?;
    let line = line.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|byte| *byte == b'=')?;
    Some((&line[..equals], &line[equals + 1..], rest))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn until_zero(mut name: Vec<u8>) -> Vec<u8> {
    let end = name.iter().position(|byte| *byte == 0);
    name.truncate(end.unwrap_or(name.len()));
    name
}
