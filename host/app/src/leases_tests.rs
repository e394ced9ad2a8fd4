use super::*;
use crate::app::Parts;
use crate::bounds::CompanyBounds;
use crate::payments::Payments;
use crate::payments::manual::Manual;
use parking_lot::Mutex;
use souk_outbound::EgressPolicy;
use souk_sandbox::{Compiler, Options, Sandbox};
use souk_store::sealing::Sealer;
use souk_store::teller::Teller;
use souk_store::{Db, OpenOptions};
use std::path::Path;
use tempfile::TempDir;

/// Never taken by a store.
const REFUSED: u32 = 2;

/// Numbers, of which one is refused and all are while the store is busy.
#[derive(Clone, Default)]
struct Numbers {
    recorded: Arc<Mutex<Vec<u32>>>,
    due: Vec<u32>,
    /// Whom they concern, of those that concern anybody.
    of: HashMap<u32, CompanyId>,
    is_busy: bool,
}

impl Kind for Numbers {
    const WHAT: &'static str = "numbers";
    const IN_FLIGHT_MAX: usize = 4;
    const LEASE: Duration = Duration::from_secs(60);
    const POLL: Duration = Duration::from_secs(1);

    type Id = u32;
    type Concerned = CompanyId;
    type Claimed = u32;
    type Ended = u32;

    async fn due(&self, _: &mut Read, _: Timestamp, _: i64) -> Result<Vec<Due<Self>>, StoreError> {
        let due = self.due.iter().map(|number| {
            let concerned = self.of.get(number).cloned();
            Due {
                id: *number,
                concerns: concerned.map(|company| (company, 4)).into_iter().collect(),
            }
        });
        Ok(due.collect())
    }

    async fn claim(
        &self,
        _: &mut Write,
        number: &u32,
        _: &Claim<'_>,
    ) -> Result<Option<u32>, StoreError> {
        self.is_there()?;
        refuse(*number)?;
        Ok(Some(*number))
    }

    async fn attempt(self, claimed: u32) -> u32 {
        claimed
    }

    fn order(one: &u32, other: &u32) -> Ordering {
        one.cmp(other)
    }

    async fn record(
        &self,
        _: &mut Write,
        ended: &u32,
        _: &str,
        _: Timestamp,
        _: bool,
    ) -> Result<(), StoreError> {
        self.is_there()?;
        refuse(*ended)?;
        self.recorded.lock().push(*ended);
        Ok(())
    }

    async fn release_all(&self, _: &mut Write) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Numbers {
    fn is_there(&self) -> Result<(), StoreError> {
        match self.is_busy {
            true => Err(StoreError::Busy),
            false => Ok(()),
        }
    }
}

fn refuse(number: u32) -> Result<(), StoreError> {
    match number {
        REFUSED => Err(StoreError::Corrupt("it has a zero in it".to_owned())),
        _ => Ok(()),
    }
}

async fn app(directory: &Path) -> App {
    let path = |name: &str| directory.join(name);
    let url = format!("sqlite:{}", path("souk.db").display());
    let db = Db::open(&OpenOptions::new(url)).await.unwrap();
    let compiler = Compiler::Child {
        program: "/nonexistent".into(),
        args: Vec::new(),
    };
    let egress = EgressPolicy::public_only();
    let options = Options::new(path("compiled"), egress.clone(), compiler);
    App::new(Parts {
        teller: Teller::open(&db).await.unwrap(),
        db,
        sandbox: Sandbox::new(options).unwrap(),
        egress,
        sealer: Sealer::open(&path("master.key")).unwrap(),
        files_dir: path("files"),
        shared_files: None,
        company_file_bytes_max: 1 << 20,
        payments: Payments::new(Arc::new(Manual)),
        identity: None,
        mail: None,
        bounds: CompanyBounds::default(),
    })
}

/// A loop of these numbers with a store of its own, in a directory that stays as long as what is returned.
async fn work(kind: Numbers) -> (Loop<Numbers>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let work = Loop {
        app: app(directory.path()).await,
        kind,
        claimant: "a host".to_owned(),
        attempts: JoinSet::new(),
        in_flight: HashMap::new(),
        ended: Vec::new(),
        unclaimed: Vec::new(),
    };
    (work, directory)
}

/// What the store refuses is left out, and the others are written down; where the store is busy all of it waits.
#[tokio::test]
async fn what_is_refused_keeps_nothing_else_waiting() {
    let (mut work, _directory) = work(Numbers::default()).await;
    work.ended = [3, REFUSED, 1].map(|ended| (ended, false)).into();
    work.kind.is_busy = true;
    assert!(matches!(work.turn(false).await, Err(StoreError::Busy)));
    assert_eq!(work.ended.len(), 3);
    work.kind.is_busy = false;
    work.turn(false).await.unwrap();
    assert!(work.ended.is_empty());
    // 1 was in the transaction that was refused, too.
    assert_eq!(*work.kind.recorded.lock(), [1, 3, 1]);
    work.ended.push((4, false));
    work.turn(false).await.unwrap();
    assert_eq!(work.kind.recorded.lock().last(), Some(&4));
    // One that cannot be taken keeps none from being taken, whatever ends meanwhile.
    work.kind.due = vec![5, REFUSED, 6];
    work.ended.push((7, false));
    work.turn(false).await.unwrap();
    work.kind.due.clear();
    let mut taken = Vec::new();
    while let Some(ended) = work.attempts.join_next().await {
        taken.push(ended.unwrap());
    }
    taken.sort_unstable();
    assert_eq!(taken, [5, 6]);
    // 7 was in the transaction that was refused, too.
    assert_eq!(work.kind.recorded.lock()[4..], [7, 7]);
}

/// What was to be claimed when the store failed is claimed before anything else, though nobody finds it: the store may have leased it.
#[tokio::test]
async fn what_may_have_been_claimed_is_claimed_again() {
    let kind = Numbers {
        due: vec![5, 6],
        is_busy: true,
        ..Numbers::default()
    };
    let (mut work, _directory) = work(kind).await;
    for _ in 0..2 {
        assert!(matches!(work.turn(false).await, Err(StoreError::Busy)));
        work.kind.due = vec![7];
    }
    work.kind.is_busy = false;
    for expected in [vec![5, 6], vec![7]] {
        work.turn(false).await.unwrap();
        let mut taken = Vec::new();
        while let Some(ended) = work.attempts.join_next().await {
            taken.push(ended.unwrap());
        }
        taken.sort_unstable();
        assert_eq!(taken, expected);
    }
    // What was written down without an answer is written down again before anything is claimed.
    work.ended.push((8, true));
    work.turn(false).await.unwrap();
    assert_eq!(*work.kind.recorded.lock(), [8]);
    assert!(work.attempts.is_empty());
    work.turn(false).await.unwrap();
    assert_eq!(work.attempts.len(), 1);
}

/// Whoever takes long has no turn again before those of whom nothing is under way, however long theirs have waited.
#[tokio::test]
async fn whoever_has_least_under_way_goes_first() {
    let [slow, other] = [(); 2].map(|()| CompanyId::generate());
    let of = [(5, &slow), (6, &slow), (7, &other), (8, &other)];
    let kind = Numbers {
        due: vec![5, 6, 7, 8],
        of: of.map(|(number, who)| (number, who.clone())).into(),
        ..Numbers::default()
    };
    let (mut work, _directory) = work(kind).await;
    // There is room for two more.
    for _ in 0..2 {
        let task = work.attempts.spawn(std::future::pending());
        work.in_flight.insert(task.id(), vec![slow.clone()]);
    }
    let due = work.due(work.app.clock.now()).await.unwrap();
    let due: Vec<_> = due.iter().map(|piece| piece.id).collect();
    assert_eq!(due, [7, 8]);
}
