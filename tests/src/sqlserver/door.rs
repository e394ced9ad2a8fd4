//! Doors: further ports of the server, at each of which it can be told to lie. What it says is spoilt before TLS seals it, so that nothing in between could
//! do the same: tokens and rows as a rule, and their packets now and then.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::{Server, locked, serve};
use crate::spoilt::Spoiler;

/// Of messages that are spoilt one in so many is in its packets, whose headers say how long they are and whether another one follows. A client that
/// believes those waits for what never comes, which takes its time.
const IN_PACKETS: usize = 12;
/// Of messages one in so many has another length somewhere.
const IN_LENGTHS: usize = 3;
/// Lengths of two, four and eight bytes that lie, and those that stand for NULL or for what nobody knows.
const LENGTHS: [&[u8]; 8] = [
    &[0xff; 2],
    &[0xff, 0x7f],
    &[0xff; 4],
    &[0xff, 0xff, 0xff, 0x7f],
    &[0x00, 0x00, 0x00, 0x80],
    &[0xf0, 0xff, 0xff, 0xff],
    &[0xff; 8],
    &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
];
/// Small and large lengths, and what tokens begin with.
const TELLING: [u8; 14] = [
    0x00, 0x01, 0x7f, 0x80, 0x81, 0xaa, 0xd1, 0xd2, 0xe3, 0xe4, 0xfd, 0xfe, 0xff, 0xae,
];

/// What is said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lie {
    #[default]
    Nothing,
    /// Answers to sessions that are there already are spoilt, in the same way for the same number. Those that begin meanwhile hear what is true.
    Answers(u64),
    /// So is what a session hears within TLS until it is let in, whenever it began.
    Logins(u64),
    /// Answers stop after so many bytes, as if that were all.
    Cut(usize),
    /// In answers that have the first of these the second one stands in its place.
    Instead(Vec<u8>, Vec<u8>),
}

/// A way in that lies when it is told to.
pub struct Door {
    pub address: SocketAddr,
    lies: Arc<Lies>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Lies {
    lie: Mutex<Lie>,
    /// Messages that were others.
    told: AtomicUsize,
}

impl Door {
    pub(super) fn open(server: &Arc<Server>) -> io::Result<Door> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let lies = Arc::<Lies>::default();
        let (server, told) = (Arc::clone(server), Arc::clone(&lies));
        let task = tokio::spawn(async move {
            // Dropped with the task, they end.
            let mut sessions = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let liar = Liar::new(&told);
                sessions.spawn(serve(socket, Arc::clone(&server), Some(liar)));
            }
        });
        Ok(Door {
            address,
            lies,
            task,
        })
    }

    /// From now on this is said.
    pub fn tell(&self, lie: Lie) {
        *locked(&self.lies.lie) = lie;
    }

    /// How many messages were not what they should be.
    pub fn told(&self) -> usize {
        self.lies.told.load(SeqCst)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Who speaks to one session of a door.
pub struct Liar {
    lies: Arc<Lies>,
    /// What was said when the session began.
    begun: Lie,
    /// With the number that it spoils by.
    spoiler: Option<(u64, Spoiler)>,
}

impl Liar {
    fn new(lies: &Arc<Lies>) -> Liar {
        Liar {
            lies: Arc::clone(lies),
            begun: locked(&lies.lie).clone(),
            spoiler: None,
        }
    }

    /// What is told in place of a message, in packets. `is_open`: the session has been let in.
    pub fn told(
        &mut self,
        body: &[u8],
        is_open: bool,
        packed: impl Fn(&[u8]) -> Vec<u8>,
    ) -> Vec<u8> {
        let honest = packed(body);
        let lie = locked(&self.lies.lie).clone();
        let told = match &lie {
            Lie::Answers(number) if is_open && lie != self.begun => {
                self.spoilt(*number, body, packed)
            }
            Lie::Logins(number) if !is_open => self.spoilt(*number, body, packed),
            Lie::Cut(bytes) if is_open => packed(&body[..body.len().min(*bytes)]),
            Lie::Instead(said, other) if is_open => packed(&instead(body, said, other)),
            _ => return honest,
        };
        if told != honest {
            self.lies.told.fetch_add(1, SeqCst);
        }
        told
    }

    fn spoilt(&mut self, number: u64, body: &[u8], packed: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        // It goes on where it was, unless that was by another number.
        let mut spoiler = match self.spoiler.take() {
            Some((known, spoiler)) if known == number => spoiler,
            _ => Spoiler::seeded(&TELLING, number),
        };
        let told = match spoiler.below(IN_PACKETS) {
            0 => spoil(&mut spoiler, packed(body)),
            _ => packed(&spoil(&mut spoiler, body.to_vec())),
        };
        self.spoiler = Some((number, spoiler));
        told
    }
}

fn spoil(spoiler: &mut Spoiler, mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.is_empty() {
        return bytes;
    }
    if spoiler.below(IN_LENGTHS) > 0 {
        return spoiler.spoilt(&[bytes]).concat();
    }
    let at = spoiler.below(bytes.len());
    let length = LENGTHS[spoiler.below(LENGTHS.len())];
    for (byte, other) in bytes[at..].iter_mut().zip(length) {
        *byte = *other;
    }
    bytes
}

/// The body with the first of what is `said` in it being another thing.
fn instead(body: &[u8], said: &[u8], other: &[u8]) -> Vec<u8> {
    let place = body
        .windows(said.len().max(1))
        .position(|bytes| bytes == said);
    match place {
        Some(at) => [&body[..at], other, &body[at + said.len()..]].concat(),
        None => body.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: [u8; 40] = [b'x'; 40];
    /// Enough for some to be spoilt in their packets' heads.
    const MESSAGES: usize = 600;

    /// What a door says for these lies, message after message, to a session that was there before or is let in only now.
    fn told(lie: Lie, begun: Lie, is_open: bool) -> Vec<Vec<u8>> {
        let lies = Arc::<Lies>::default();
        *locked(&lies.lie) = begun;
        let mut liar = Liar::new(&lies);
        *locked(&lies.lie) = lie;
        let packed = |body: &[u8]| [&b"head"[..], body].concat();
        let told = (0..MESSAGES).map(|_| liar.told(&SAID, is_open, packed));
        told.collect()
    }

    /// The same number says the same, another one another thing, and not every message begins as it should.
    #[test]
    fn a_number_says_what_is_spoilt() {
        let spoilt = |number| told(Lie::Answers(number), Lie::Nothing, true);
        assert_eq!(spoilt(7), spoilt(7));
        assert_ne!(spoilt(7), spoilt(8));
        let heads = spoilt(7)
            .iter()
            .filter(|told| told.starts_with(b"head"))
            .count();
        assert!((MESSAGES / 2..MESSAGES).contains(&heads), "{heads}");
        let logins = told(Lie::Logins(7), Lie::Nothing, false);
        assert_eq!(logins, spoilt(7));
    }

    /// Who is not meant hears what is true.
    #[test]
    fn others_are_not_lied_to() {
        let honest = told(Lie::Nothing, Lie::Nothing, true);
        assert_eq!(honest[0], [&b"head"[..], &SAID].concat());
        for (lie, begun, is_open) in [
            (Lie::Answers(7), Lie::Answers(7), true),
            (Lie::Answers(7), Lie::Nothing, false),
            (Lie::Logins(7), Lie::Nothing, true),
            (Lie::Cut(3), Lie::Nothing, false),
            (Lie::Instead(vec![b'x'], vec![]), Lie::Nothing, false),
            (Lie::Instead(vec![b'y'], vec![]), Lie::Nothing, true),
        ] {
            assert_eq!(told(lie.clone(), begun, is_open), honest, "{lie:?}");
        }
    }

    #[test]
    fn answers_are_cut_and_changed() {
        let cut = told(Lie::Cut(3), Lie::Cut(3), true);
        assert_eq!(cut[0], b"headxxx");
        let other = Lie::Instead(b"xx".to_vec(), b"abc".to_vec());
        let instead = told(other, Lie::Nothing, true);
        assert!(instead[0].starts_with(b"headabcxxx"), "{:?}", instead[0]);
        assert_eq!(instead[0].len(), 4 + 41);
    }
}
