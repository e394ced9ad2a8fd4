//! Who has which turn and for how long, and what becomes of work that nobody waits for.

use super::*;
use crate::tenants::Tenants;
use std::{
    pin::pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
    time::Instant,
};

fn lanes(threads: usize, per_company: usize) -> Lanes {
    let lane = Lane {
        name: "test-lane",
        threads,
        nice: 0,
        per_company,
        rests: 0,
    };
    Lanes::start(lane, None).unwrap()
}

/// One thread that rests.
fn resting_lane() -> Lanes {
    let lane = Lane {
        name: "test-lane",
        threads: 1,
        nice: 0,
        per_company: usize::MAX,
        rests: 3,
    };
    Lanes::start(lane, None).unwrap()
}

/// Computes for so long, a millisecond a turn.
async fn compute(millis: u64) {
    for _ in 0..millis {
        burn(Duration::from_millis(1));
        turn().await;
    }
}

fn burn(time: Duration) {
    let begun = thread_time();
    while thread_time() - begun < time {
        std::hint::spin_loop();
    }
}

/// Keeps the only thread of these lanes until what is returned is dropped: what is called meanwhile begins together, however long a loaded machine takes.
fn held(lanes: &Lanes, tenants: &Tenants) -> mpsc::Sender<()> {
    let (begin, begun) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let waits = async move {
        begin.send(()).unwrap();
        let _ = ended.recv();
    };
    lanes.call(&tenants.of("gate"), false, waits).detach();
    begun.recv().unwrap();
    end
}

/// Gives its turn back once.
async fn turn() {
    let mut given = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// One company with sixteen tasks and one with a single task get as much processor time.
#[test]
fn companies_share_evenly_whatever_they_ask_for() {
    let lanes = lanes(1, usize::MAX);
    let tenants = Tenants::default();
    let (many, one) = (tenants.of("many"), tenants.of("one"));
    let held = held(&lanes, &tenants);
    let done = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let mut tasks = Vec::new();
    for (tenant, count, done) in [(&many, 16, &done[0]), (&one, 1, &done[1])] {
        for _ in 0..count {
            let done = done.clone();
            tasks.push(lanes.call(tenant, false, async move {
                loop {
                    burn(Duration::from_millis(1));
                    done.fetch_add(1, Ordering::Relaxed);
                    turn().await;
                }
            }));
        }
    }
    drop(held);
    let count = |index: usize| done[index].load(Ordering::Relaxed);
    while count(0) + count(1) < 200 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let share = count(1) as f64 / (count(0) + count(1)) as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
    assert!(many.computed_us() > 0 && one.computed_us() > 0);
}

/// Where threads rest, a task that goes on and on has no more than its part of the time, and a short one all of it.
#[test]
fn who_computes_for_long_leaves_time() {
    let lanes = resting_lane();
    let tenant = Tenants::default().of("company");
    let eager = EAGER_US / 1_000;
    let takes = |millis: u64| {
        let begun = Instant::now();
        futures_executor(lanes.call(&tenant, false, compute(millis))).unwrap();
        begun.elapsed()
    };
    assert!(takes(3 * eager) >= Duration::from_millis(8 * eager));
    // A loaded machine is slow, too, but not each time.
    let is_eager = |_| takes(eager / 2) < Duration::from_millis(eager);
    assert!((0..100).any(is_eager));
}

/// What a thread rests for one company is that one's time: another one has half of the thread beside it, as it had without rests.
#[test]
fn rests_are_the_time_of_who_makes_them() {
    let lanes = resting_lane();
    let tenants = Tenants::default();
    let (busy, other) = (tenants.of("busy"), tenants.of("other"));
    lanes.call(&busy, false, compute(u64::MAX)).detach();
    while busy.computed_us() < 2 * EAGER_US {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Turn for turn, as if nobody rested, it would take 100 ms: as many turns of the busy one's, each with its rest.
    let is_half = |_| {
        let begun = Instant::now();
        futures_executor(lanes.call(&other, false, compute(20))).unwrap();
        begun.elapsed() < Duration::from_millis(70)
    };
    assert!((0..100).any(is_half));
}

/// However long a turn was, whoever comes after it waits for a moment.
#[test]
fn a_long_turn_makes_no_long_rest() {
    let lanes = resting_lane();
    let tenants = Tenants::default();
    let (long, other) = (tenants.of("long"), tenants.of("other"));
    let is_soon = |_| {
        let turn = async { burn(Duration::from_micros(4 * EAGER_US)) };
        futures_executor(lanes.call(&long, false, turn)).unwrap();
        let begun = Instant::now();
        futures_executor(lanes.call(&other, false, async {})).unwrap();
        begun.elapsed() < Duration::from_micros(4 * RESTS_MAX_US)
    };
    assert!((0..20).any(is_soon));
}

/// The tasks of one company end one after the other, but for those that take long.
#[test]
fn tasks_of_one_company_take_long_turns() {
    let lanes = lanes(1, usize::MAX);
    let tenants = Tenants::default();
    let tenant = tenants.of("company");
    let held = held(&lanes, &tenants);
    let turns = Arc::new(AtomicU64::new(0));
    let task = |count: u64| {
        let turns = turns.clone();
        lanes.call(&tenant, false, async move {
            for _ in 0..count {
                burn(Duration::from_millis(2));
                turns.fetch_add(1, Ordering::Relaxed);
                turn().await;
            }
            turns.load(Ordering::Relaxed)
        })
    };
    let tasks = [task(40), task(4), task(4)];
    drop(held);
    let ended = tasks.map(|task| futures_executor(task).unwrap());
    let [long, first, second] = ended;
    assert_eq!((long, second - first), (48, 4), "{ended:?}");
    assert!((first..20).contains(&first), "{ended:?}");
}

/// A company that was idle has not saved up turns.
#[test]
fn nobody_saves_up_turns() {
    let state = State {
        floor: 1_000_000,
        ..State::default()
    };
    let inner = Inner {
        state: Mutex::new(state),
        ready: Condvar::new(),
        per_company: 1,
        rests: 0,
    };
    let tenant = Tenants::default().of("late");
    let tag = Tag {
        tenant: tenant.clone(),
        stretch_us: AtomicU64::new(0),
        used_us: AtomicU64::new(0),
    };
    let (turn, _task) = async_task::Builder::new()
        .metadata(Arc::new(tag))
        .spawn(|_| async {}, |_| ());
    inner.push(turn);
    assert_eq!(inner.state.lock().queues[&tenant.id].served_us, 1_000_000);
}

/// A lane for one task a company runs the second one when the first has ended.
#[test]
fn tasks_of_one_company_wait_for_each_other() {
    let lanes = lanes(4, 1);
    let tenant = Tenants::default().of("company");
    let (running, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let works = (0..8).map(|_| {
            let (running, most) = (running.clone(), most.clone());
            lanes.compute(&tenant, move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                burn(Duration::from_millis(1));
                running.fetch_sub(1, Ordering::SeqCst);
            })
        });
        let works: Vec<_> = works.collect();
        for work in futures_util::future::join_all(works).await {
            work.unwrap();
        }
    });
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

/// What nobody waits for any more holds nothing until its turn would have come.
#[test]
fn what_is_given_up_holds_nothing() {
    let lanes = lanes(1, 1);
    let tenant = Tenants::default().of("company");
    let (end, ended) = mpsc::channel::<()>();
    let busy = lanes.call(&tenant, false, async move {
        let _ = ended.recv();
    });
    let held = Arc::new(());
    let holds = held.clone();
    let mut waits = Box::pin(lanes.compute(&tenant, move || drop(holds)));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    drop(waits);
    assert_eq!(Arc::strong_count(&held), 1);
    drop(end);
    assert!(futures_executor(busy).is_some());
}

/// What is done in its first turn has stayed on its thread; what is not goes on in the lane.
#[test]
fn the_first_turn_is_here() {
    let lanes = lanes(1, usize::MAX);
    let tenant = Tenants::default().of("company");
    let here = std::thread::current().id();
    let mut quick = pin!(lanes.call(&tenant, true, async { std::thread::current().id() }));
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(quick.as_mut().poll(&mut cx), Poll::Ready(Some(here)));
    let long = lanes.call(&tenant, true, async {
        let first = std::thread::current().id();
        turn().await;
        (first, std::thread::current().id())
    });
    let (first, second) = futures_executor(long).unwrap();
    assert!(first == here && second != here);
}

/// A task that panics, and those that wait when the lanes end, are told as gone; the lane goes on.
#[test]
fn what_cannot_be_done_is_told() {
    let lanes = lanes(1, usize::MAX);
    let tenant = Tenants::default().of("company");
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let panics = lanes.call(&tenant, false, async { panic!("a bug") });
    let none: Option<()> = futures_executor(panics);
    std::panic::set_hook(hook);
    assert!(none.is_none());
    assert_eq!(
        futures_executor(lanes.call(&tenant, false, async { 7 })),
        Some(7)
    );
    let never = lanes.call(&tenant, false, std::future::pending::<()>());
    let waits = lanes.call(&tenant, false, async {
        loop {
            turn().await;
        }
    });
    let begun = Instant::now();
    drop(lanes);
    let _: Option<()> = futures_executor(waits);
    drop(never);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

fn futures_executor<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}
