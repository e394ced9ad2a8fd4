//! A backend that is the session's own: what it is set up with, and what is done where a cancel comes so late that it strikes what takes a
//! transaction back.
//!
//! A statement runs in an implicit transaction, which an error ends. Behind it `BEGIN` makes that transaction one that `ROLLBACK` ends: of an implicit
//! one servers would write a warning into their log. `ROLLBACK` is the *unnamed* prepared statement, which no SQL can reach, deallocate or replace.
//! `BEGIN` has a name, and what a statement did to it changes nothing: without it the transaction is taken back all the same.

use super::{ENDINGS_MAX, Session, UNLOCK};
use crate::job::{Job, Setup};
use crate::protocol::{self, malformed};
use souk_sdk::{Error, Step};

impl Session {
    /// Has what follows every statement parsed: as soon as the backend is known to be the session's own, before anything can run.
    pub(super) fn set_up(&mut self, step: &mut Step) {
        let out = step.outgoing();
        protocol::parse(out, "", "ROLLBACK", &[]);
        // There may be one that a statement has put there.
        protocol::close(out, protocol::BEGIN);
        protocol::parse(out, protocol::BEGIN, "BEGIN", &[]);
        out.extend_from_slice(&protocol::SYNC);
        self.queue.push_back(Job::Setup(Setup { is_own: false }));
    }

    /// A Sync was answered, and there is a transaction. Only between `BEGIN` and `ROLLBACK` can an error leave one; it has failed, and what is on
    /// its way already fails until it is taken back.
    #[cold]
    pub(super) fn undo(&mut self, state: u8, step: &mut Step) -> Result<(), Error> {
        if state != b'E' || self.unended == ENDINGS_MAX {
            return Err(malformed().detail("a statement left a transaction open"));
        }
        // The first one is the job that ends here.
        let mut others = self.queue.iter().skip(1);
        if !others.any(|job| matches!(job, Job::End { .. })) {
            self.unended += 1;
            step.send(&protocol::UNDO_SYNC);
            self.queue.push_back(Job::End { unlocks: false });
        }
        Ok(())
    }

    /// Gives up what the statement before may have locked, whether it has failed or not.
    #[cold]
    pub(super) fn unlock(&mut self, step: &mut Step) {
        let job = Job::Unlock { struck: false };
        // It binds no value that could be refused.
        let _ = self.run_own(("unlock", UNLOCK), &[], &[], job, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::{Command, Event, Input, Limits, Machine, Query, Request, Settings};

    type Messages<'a> = &'a [(u8, &'a [u8])];

    const CANCELLED: &[u8] = b"SERROR\0C57014\0Mcanceling statement\0\0";
    const ABORTED: &[u8] = b"SERROR\0C25P02\0Mcurrent transaction is aborted\0\0";
    /// A statement without parameters and with one column, `n`, of four bytes.
    const DESCRIBED: Messages<'static> = &[
        (b'1', b""),
        (b't', b"\0\0"),
        (
            b'T',
            b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0",
        ),
        (b'Z', b"I"),
    ];
    /// Its answer, and that it is taken back.
    const ANSWERED: Messages<'static> = &[
        (b'2', b""),
        (b'D', b"\0\x01\0\0\0\x04\0\0\0\x07"),
        (b'C', b"SELECT 1\0"),
        (b'2', b""),
        (b'C', b"BEGIN\0"),
        (b'2', b""),
        (b'C', b"ROLLBACK\0"),
        (b'Z', b"I"),
    ];
    /// The same, where a cancel strikes `ROLLBACK`.
    const STRUCK: Messages<'static> = &[
        (b'2', b""),
        (b'D', b"\0\x01\0\0\0\x04\0\0\0\x07"),
        (b'C', b"SELECT 1\0"),
        (b'2', b""),
        (b'C', b"BEGIN\0"),
        (b'2', b""),
        (b'E', CANCELLED),
        (b'Z', b"E"),
    ];

    fn received(session: &mut Session, messages: Messages<'_>) -> Result<Step, Error> {
        let mut bytes = Vec::new();
        for (tag, body) in messages {
            protocol::message(&mut bytes, *tag, |out| out.extend_from_slice(body));
        }
        let mut step = Step::default();
        session.receive(Input::Bytes(bytes), &mut step)?;
        Ok(step)
    }

    /// What goes out, and which requests are answered; none has failed.
    fn seen(step: Step) -> (String, Vec<u32>) {
        let (commands, events) = step.into_parts();
        let sent = commands.iter().map(|command| match command {
            Command::Send(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?}"),
        });
        let done = events.iter().filter_map(|event| match event {
            Event::Done(id) => Some(*id),
            Event::Failed(failure) => panic!("{:?}", failure.error),
            _ => None,
        });
        (sent.collect(), done.collect())
    }

    fn after(session: &mut Session, messages: Messages<'_>) -> (String, Vec<u32>) {
        seen(received(session, messages).expect("a valid answer"))
    }

    fn ask(session: &mut Session, id: u32, text: &str) -> String {
        let limits = Limits {
            rows_max: 10,
            bytes_max: 1 << 10,
            timeout_ms: 1_000,
        };
        let request = Request::Query(Query {
            text: text.into(),
            parameters: Vec::new(),
            limits,
        });
        let mut step = Step::default();
        session
            .submit(id, request, &mut step)
            .expect("an open session");
        seen(step).0
    }

    fn opened() -> Session {
        let json = r#"{"username":"u","password":"p","database":"d","ssl_mode":"disable"}"#;
        let mut session = Session::open(Settings {
            engine: "postgres".into(),
            json: json.into(),
        })
        .unwrap();
        session.start(&mut Step::default()).unwrap();
        after(
            &mut session,
            &[
                (b'R', b"\0\0\0\0"),
                (b'K', b"\0\0\0\x2a\0\0\0\0"),
                (b'Z', b"I"),
            ],
        );
        after(
            &mut session,
            &[
                (b'1', b""),
                (b'2', b""),
                (b'D', b"\0\x02\0\0\0\x0242\0\0\0\x02on"),
                (b'C', b"SELECT 1\0"),
                (b'Z', b"I"),
            ],
        );
        let parsed: Messages<'_> = &[(b'1', b""), (b'3', b""), (b'1', b""), (b'Z', b"I")];
        after(&mut session, parsed);
        assert!(!session.is_pooled() && session.queue.is_empty());
        session
    }

    fn undo() -> String {
        String::from_utf8_lossy(&protocol::UNDO_SYNC).into_owned()
    }

    /// A cancel that comes behind a statement's end takes neither its answer nor those of the requests behind it, and leaves no transaction.
    #[test]
    fn a_transaction_that_stays_is_taken_back() {
        let mut session = opened();
        ask(&mut session, 1, "SELECT 7 AS n");
        let (sent, _) = after(&mut session, DESCRIBED);
        assert!(sent.contains("begin"), "{sent}");
        // On their way already. What runs a statement ends with the same bytes.
        assert!(ask(&mut session, 2, "SELECT 7 AS n").contains("begin"));
        assert!(ask(&mut session, 3, "SELECT 8 AS n").contains("SELECT 8"));
        assert_eq!(after(&mut session, STRUCK), (undo(), vec![1]));
        let (sent, _) = after(&mut session, &[(b'E', ABORTED), (b'Z', b"E")]);
        // As it is prepared already: once more, behind what takes the transaction back.
        assert_eq!(sent.matches(&undo()).count(), 1, "{sent}");
        assert!(
            sent.contains("begin") && !sent.contains("SELECT 7"),
            "{sent}"
        );
        let (sent, _) = after(&mut session, &[(b'E', ABORTED), (b'Z', b"E")]);
        assert!(
            sent.contains("SELECT 8") && !sent.contains(&undo()),
            "{sent}"
        );
        let taken_back: Messages<'_> = &[(b'2', b""), (b'C', b"ROLLBACK\0"), (b'Z', b"I")];
        assert_eq!(after(&mut session, taken_back), (String::new(), vec![]));
        assert_eq!(session.unended, 0);
        assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![2]));
        after(&mut session, DESCRIBED);
        assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![3]));
    }

    /// A server on which a transaction never ends is not asked for ever.
    #[test]
    fn a_transaction_that_never_ends_ends_the_session() {
        let mut session = opened();
        ask(&mut session, 1, "SELECT 7 AS n");
        after(&mut session, DESCRIBED);
        after(&mut session, STRUCK);
        let struck: Messages<'_> = &[(b'E', CANCELLED), (b'Z', b"E")];
        for _ in 1..ENDINGS_MAX {
            assert_eq!(after(&mut session, struck).0, undo());
        }
        assert!(received(&mut session, struck).is_err());
    }

    /// What a statement has locked for the session is given up behind it, and once more where a cancel struck that.
    #[test]
    fn locks_are_given_up() {
        let mut session = opened();
        ask(
            &mut session,
            1,
            "SELECT length(pg_advisory_lock(1)::text) AS n",
        );
        let (sent, _) = after(&mut session, DESCRIBED);
        assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
        assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![1]));
        session.strays = 1;
        let struck: Messages<'_> = &[
            (b'3', b""),
            (b'1', b""),
            (b'2', b""),
            (b'E', CANCELLED),
            (b'Z', b"I"),
        ];
        let (sent, _) = after(&mut session, struck);
        assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
        assert_eq!(after(&mut session, ANSWERED).0, "");
        assert_eq!(session.strays, 0);
    }

    /// So it is where a cancel struck what takes the statement's transaction back: nobody who asks next waits for its locks.
    #[test]
    fn locks_of_a_transaction_that_stays_are_given_up() {
        let mut session = opened();
        ask(
            &mut session,
            1,
            "SELECT length(pg_advisory_lock(1)::text) AS n",
        );
        after(&mut session, DESCRIBED);
        assert_eq!(after(&mut session, STRUCK), (undo(), vec![1]));
        let aborted: Messages<'_> = &[(b'E', ABORTED), (b'Z', b"E")];
        let (sent, _) = after(&mut session, aborted);
        assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
        let taken_back: Messages<'_> = &[(b'2', b""), (b'C', b"ROLLBACK\0"), (b'Z', b"I")];
        assert_eq!(after(&mut session, taken_back), (String::new(), vec![]));
        assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![]));
        // Without a transaction that is to be taken back it is not asked for ever.
        assert!(session.queue.is_empty());
    }
}
