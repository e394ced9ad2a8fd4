//! A wire to PostgreSQL that is cut in the middle of a commit: before the server hears of it, or behind it, with its answer. Whoever sent it learns
//! the same in both cases, that the connection ended. The server may stay out of reach behind that, or hear of the commit late, or not learn that
//! its client has gone; and a wire may swallow what is said without an end for anybody, a commit or any other question.
//!
//! It reads what the client says (version 3 of the protocol, without TLS), in order to know which transaction a commit is of.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How the server's answer to a commit ends.
const COMMITTED: &[u8] = b"COMMIT\0";
/// A commit takes milliseconds.
const COMMITS_WITHIN: Duration = Duration::from_secs(60);

/// By how much a commit is late: longer than it takes a host to look what became of it, and shorter than it waits for that.
const LATE: Duration = Duration::from_secs(2);
/// A side that nobody talks to has had enough by then: a generous multiple of the host's limits.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(180);

/// Where the wire is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server does not hear of the commit, and undoes the transaction.
    Before,
    /// The server commits; nobody hears of it.
    Behind,
}

impl Cut {
    pub const BOTH: [Cut; 2] = [Cut::Before, Cut::Behind];
}

/// What becomes of a commit.
#[derive(Clone, Copy)]
enum Fate {
    Cut(Cut),
    /// The client's connection ends; the server hears of the commit later.
    Late,
    /// The client's connection ends; the server waits for what comes next.
    Forgotten,
    /// Both wait for each other.
    Swallowed,
    /// The same, until the client has had enough.
    Unheard,
}

pub struct CommitWire {
    pub port: u16,
    plan: Arc<Plan>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Plan {
    next: Mutex<Option<Planned>>,
    cuts: AtomicUsize,
    /// All connections end, and new ones do at once.
    is_away: watch::Sender<bool>,
}

/// What becomes of the next commit of a transaction that has a statement with this text, or of the statement.
#[derive(Clone, Copy)]
struct Planned {
    fate: Fate,
    statement: &'static str,
    meant: Meant,
    /// The server is out of reach from then on.
    stays_away: bool,
}

/// What is meant by a statement.
#[derive(Clone, Copy)]
enum Meant {
    /// The commit of its transaction.
    Commit,
    Statement,
    /// In no transaction.
    StatementAlone,
}

impl CommitWire {
    /// To the server at this port.
    pub async fn to(server: u16) -> CommitWire {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let plan = Arc::<Plan>::default();
        let shared = Arc::clone(&plan);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let plan = Arc::clone(&shared);
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await {
                        // The end of a connection is its client's, or one that was asked for.
                        let _ = carry(client, server, &plan).await;
                    }
                });
            }
        });
        CommitWire { port, plan, task }
    }

    /// Cuts the next commit of a transaction that has a statement with this text, and no other one.
    pub fn cut(&self, cut: Cut, statement: &'static str) {
        self.plan(Fate::Cut(cut), statement, false);
    }

    /// The same, and nobody reaches the server behind that, until it is [back](CommitWire::come_back).
    pub fn cut_off(&self, cut: Cut, statement: &'static str) {
        self.plan(Fate::Cut(cut), statement, true);
    }

    /// The connection of the next such commit ends for its client; the server commits two seconds later.
    pub fn delay(&self, statement: &'static str) {
        self.plan(Fate::Late, statement, false);
    }

    /// The connection of the next such commit ends for its client; the server does not learn of the commit, nor of the end.
    pub fn forget(&self, statement: &'static str) {
        self.plan(Fate::Forgotten, statement, false);
    }

    /// Of the connection of the next such commit neither side hears anything more.
    pub fn swallow(&self, statement: &'static str) {
        self.plan(Fate::Swallowed, statement, false);
    }

    /// Of the connection on which the next statement with this text is executed neither side hears anything more.
    pub fn swallow_question(&self, statement: &'static str) {
        self.unheard(statement, Meant::Statement);
    }

    /// The same of one that stands in no transaction.
    pub fn swallow_question_alone(&self, statement: &'static str) {
        self.unheard(statement, Meant::StatementAlone);
    }

    fn unheard(&self, statement: &'static str, meant: Meant) {
        *self.plan.planned() = Some(Planned {
            fate: Fate::Unheard,
            statement,
            meant,
            stays_away: false,
        });
    }

    fn plan(&self, fate: Fate, statement: &'static str, stays_away: bool) {
        *self.plan.planned() = Some(Planned {
            fate,
            statement,
            meant: Meant::Commit,
            stays_away,
        });
    }

    /// The server can be reached again.
    pub fn come_back(&self) {
        self.plan.is_away.send_replace(false);
    }

    /// Commits that were cut, and questions that were swallowed.
    pub fn cuts(&self) -> usize {
        self.plan.cuts.load(SeqCst)
    }
}

impl Drop for CommitWire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Plan {
    fn planned(&self) -> MutexGuard<'_, Option<Planned>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes of the last of these statements, which are a transaction's or a connection's, once, if that is anything else than usual.
    fn take(&self, statements: &[Vec<u8>]) -> Option<Fate> {
        let mut next = self.planned();
        let Planned {
            fate,
            statement,
            meant,
            stays_away,
        } = (*next)?;
        let (last, before) = statements.split_last()?;
        let has = |text: &Vec<u8>| contains(text, statement.as_bytes());
        let is_meant = match meant {
            Meant::Commit => commits(last) && before.iter().any(has),
            Meant::Statement => has(last),
            Meant::StatementAlone => has(last) && !is_open(before),
        };
        if !is_meant {
            return None;
        }
        *next = None;
        self.cuts.fetch_add(1, SeqCst);
        if stays_away {
            self.is_away.send_replace(true);
        }
        Some(fate)
    }
}

/// Until either side has had enough, or a commit is cut: with both sockets everything ends.
async fn carry(mut client: TcpStream, mut server: TcpStream, plan: &Plan) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut is_away = plan.is_away.subscribe();
    let mut dialogue = Dialogue::default();
    let (mut asked, mut answered) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    loop {
        let gone = async {
            let _ = is_away.wait_for(|is_away| *is_away).await;
        };
        tokio::select! {
            () = gone => return Ok(()),
            count = client.read(&mut asked) => {
                let count = count?;
                if count == 0 {
                    return Ok(());
                }
                dialogue.unread.extend_from_slice(&asked[..count]);
                while let Some(frame) = dialogue.frame() {
                    let fate = match dialogue.executes(&frame) {
                        true => plan.take(&dialogue.statements),
                        false => None,
                    };
                    match fate {
                        None => server.write_all(&frame.bytes).await?,
                        Some(Fate::Cut(Cut::Before)) => return Ok(()),
                        Some(Fate::Cut(Cut::Behind)) => return lose_answer(server, &frame).await,
                        Some(Fate::Late) => {
                            drop(client);
                            tokio::time::sleep(LATE).await;
                            return lose_answer(server, &frame).await;
                        }
                        Some(Fate::Forgotten) => {
                            drop(client);
                            return until_it_ends(server).await;
                        }
                        Some(Fate::Swallowed) => {
                            let ends = (until_it_ends(client), until_it_ends(server));
                            return tokio::try_join!(ends.0, ends.1).map(drop);
                        }
                        Some(Fate::Unheard) => return until_it_ends(client).await,
                    }
                }
            }
            count = server.read(&mut answered) => {
                let count = count?;
                if count == 0 {
                    return Ok(());
                }
                client.write_all(&answered[..count]).await?;
            }
        }
    }
}

/// Has the server commit, and keeps what it says of that.
async fn lose_answer(mut server: TcpStream, commit: &Frame) -> io::Result<()> {
    const SYNC: [u8; 5] = *b"S\0\0\0\x04";
    server.write_all(&commit.bytes).await?;
    // Of the extended protocol: nothing is answered before that.
    if commit.kind == b'E' {
        server.write_all(&SYNC).await?;
    }
    let mut answer = Vec::new();
    let committed = async {
        while !contains(&answer, COMMITTED) {
            let count = server.read_buf(&mut answer).await?;
            assert!(count > 0, "the server has not committed");
        }
        Ok::<_, io::Error>(())
    };
    let committed = tokio::time::timeout(COMMITS_WITHIN, committed).await;
    committed.expect("the server commits")
}

/// Says nothing, and hears nothing, until the other side has had enough.
async fn until_it_ends(mut side: TcpStream) -> io::Result<()> {
    let mut unheard = vec![0; 16 << 10];
    let end = async {
        while side.read(&mut unheard).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    let end = tokio::time::timeout(FORGOTTEN_WITHIN, end).await;
    end.expect("whoever hears nothing ends the connection")
}

/// What a client has said on its connection.
#[derive(Default)]
struct Dialogue {
    unread: Vec<u8>,
    has_begun: bool,
    /// The texts of prepared statements by their names.
    prepared: HashMap<Vec<u8>, Vec<u8>>,
    /// Of the transaction that is open, or was last.
    statements: Vec<Vec<u8>>,
    /// What is executed next.
    bound: Vec<u8>,
}

/// A message of the protocol.
struct Frame {
    /// 0 of the first one, which has none.
    kind: u8,
    bytes: Vec<u8>,
}

impl Frame {
    /// What it says behind its kind and its length, which ends at zero bytes.
    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let said = self.bytes.get(5..).unwrap_or_default();
        said.split(|byte| *byte == 0)
    }
}

impl Dialogue {
    /// The next message that is all there.
    fn frame(&mut self) -> Option<Frame> {
        let head = usize::from(self.has_begun);
        let length = self.unread.get(head..head + 4)?.try_into().ok()?;
        let whole = head + u32::from_be_bytes(length) as usize;
        if self.unread.len() < whole {
            return None;
        }
        let kind = if self.has_begun { self.unread[0] } else { 0 };
        self.has_begun = true;
        let rest = self.unread.split_off(whole);
        let bytes = std::mem::replace(&mut self.unread, rest);
        Some(Frame { kind, bytes })
    }

    /// Whether this message executes a statement, which is the last one then. Notes what it says else.
    fn executes(&mut self, frame: &Frame) -> bool {
        let mut texts = frame.texts();
        match (frame.kind, texts.next(), texts.next()) {
            (b'Q', Some(text), _) => {
                self.note(text.to_vec());
                true
            }
            (b'P', Some(name), Some(text)) => {
                self.prepared.insert(name.to_vec(), text.to_vec());
                false
            }
            (b'B', Some(_), Some(name)) => {
                self.bound = self.prepared.get(name).cloned().unwrap_or_default();
                false
            }
            (b'E', _, _) => {
                let bound = std::mem::take(&mut self.bound);
                self.note(bound);
                true
            }
            _ => false,
        }
    }

    fn note(&mut self, text: Vec<u8>) {
        if text.starts_with(b"BEGIN") {
            self.statements.clear();
        }
        self.statements.push(text);
    }
}

fn commits(text: &[u8]) -> bool {
    text.trim_ascii().eq_ignore_ascii_case(b"COMMIT")
}

/// Whether what these statements have begun, if it was a transaction, has not ended.
fn is_open(statements: &[Vec<u8>]) -> bool {
    let begun = |text: &Vec<u8>| text.starts_with(b"BEGIN");
    let ended = |text: &Vec<u8>| commits(text) || text.starts_with(b"ROLLBACK");
    statements.first().is_some_and(begun) && !statements.iter().any(ended)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
