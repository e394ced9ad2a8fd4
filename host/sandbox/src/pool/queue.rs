//! Who waits for a session of a data connection. Callers have turns, however many requests each of them has here: in each turn one is served. Where
//! there is no place left, whoever would be served last has none. Knows no sessions. Start reading at [`Queue::push`].

use std::{collections::VecDeque, time::Instant};

use super::session::Job;

#[derive(Default)]
pub(super) struct Queue {
    /// In the order in which they are served.
    standing: VecDeque<Standing>,
    /// That of the job which left last: whoever comes anew is served in the next one.
    turn: u64,
}

struct Standing {
    turn: u64,
    job: Job,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.standing.len()
    }

    pub fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }

    /// The next one.
    pub fn front(&self) -> Option<&Job> {
        self.standing.front().map(|standing| &standing.job)
    }

    /// In the order in which they are served.
    pub fn iter(&self) -> impl Iterator<Item = &Job> {
        self.standing.iter().map(|standing| &standing.job)
    }

    /// In the turn behind that of its caller's last one, behind those of others who have this turn, too. Looks at all that wait, where none of them
    /// is the caller's.
    pub fn push(&mut self, job: Job) {
        let turn = self.turn_of(job.caller);
        let at = self
            .standing
            .partition_point(|standing| standing.turn <= turn);
        self.standing.insert(at, Standing { turn, job });
    }

    /// A job that was taken and is not served: it is the next one.
    pub fn push_front(&mut self, job: Job) {
        let turn = self.turn;
        self.standing.push_front(Standing { turn, job });
    }

    pub fn pop_front(&mut self) -> Option<Job> {
        let Standing { turn, job } = self.standing.pop_front()?;
        self.turn = turn;
        Some(job)
    }

    /// Whether a job of this caller would be served before the last one.
    pub fn yields_to(&self, caller: u64) -> bool {
        let last = self.standing.back();
        last.is_some_and(|last| last.turn > self.turn_of(caller))
    }

    /// The last one gives its place up.
    pub fn pop_back(&mut self) -> Option<Job> {
        self.standing.pop_back().map(|standing| standing.job)
    }

    /// Forgets those for whose answer nobody waits. Returns whether there were any.
    pub fn forget_gone(&mut self) -> bool {
        let before = self.standing.len();
        self.standing
            .retain(|standing| !standing.job.ticket.is_gone());
        self.standing.len() < before
    }

    /// Those whose time is over.
    pub fn take_late(&mut self, now: Instant) -> Vec<Job> {
        let all = std::mem::take(&mut self.standing).into_iter();
        let (late, rest): (VecDeque<Standing>, VecDeque<Standing>) =
            all.partition(|standing| standing.job.deadline <= now);
        self.standing = rest;
        late.into_iter().map(|standing| standing.job).collect()
    }

    pub fn take_all(&mut self) -> Vec<Job> {
        let all = std::mem::take(&mut self.standing).into_iter();
        all.map(|standing| standing.job).collect()
    }

    /// Of the caller's next job.
    fn turn_of(&self, caller: u64) -> u64 {
        let mut standing = self.standing.iter().rev();
        let last = standing.find(|standing| standing.job.caller == caller);
        last.map_or(self.turn, |last| last.turn) + 1
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{
        pool::Waiting,
        request::{Limits, Request},
    };

    /// A job is known by how many rows it wants, and has as many minutes.
    fn job(caller: &str, number: u32) -> Job {
        let request = Request::Ping(Limits::new(number, 1));
        let deadline = Instant::now() + Duration::from_secs(60 * u64::from(number));
        Job::new(caller, request, deadline, Arc::default())
    }

    fn queue(jobs: &[(&str, u32)]) -> Queue {
        let mut queue = Queue::default();
        for (caller, number) in jobs {
            queue.push(job(caller, *number));
        }
        queue
    }

    fn number(job: &Job) -> u32 {
        job.request.limits().rows_max
    }

    fn rest(queue: &mut Queue) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop_front())
            .map(|job| number(&job))
            .collect()
    }

    /// One caller's are served in the order in which they came.
    #[test]
    fn who_is_alone_is_served_in_order() {
        let mut queue = queue(&[("one", 1), ("one", 2), ("one", 3)]);
        assert_eq!(rest(&mut queue), [1, 2, 3]);
    }

    /// Whoever comes anew is served next but one, however many wait, and nobody saves up turns.
    #[test]
    fn callers_have_turns() {
        let mut queue = queue(&[("many", 1), ("many", 2), ("many", 3), ("many", 4)]);
        queue.push(job("one", 10));
        queue.push(job("other", 20));
        queue.push(job("one", 11));
        assert_eq!(queue.pop_front().map(|job| number(&job)), Some(1));
        assert_eq!(queue.pop_front().map(|job| number(&job)), Some(10));
        queue.push(job("late", 30));
        assert_eq!(rest(&mut queue), [20, 2, 11, 30, 3, 4]);
        queue.push(job("late", 31));
        queue.push(job("many", 5));
        queue.push(job("late", 32));
        assert_eq!(rest(&mut queue), [31, 5, 32]);
    }

    /// What comes back is next, in the order in which it was, and keeps nobody's turn from being the next one.
    #[test]
    fn what_comes_back_is_next() {
        let mut queue = queue(&[("many", 1), ("many", 2), ("many", 3), ("one", 10)]);
        let taken: Vec<Job> = std::iter::from_fn(|| queue.pop_front()).take(2).collect();
        for job in taken.into_iter().rev() {
            queue.push_front(job);
        }
        queue.push(job("other", 20));
        assert_eq!(rest(&mut queue), [1, 10, 2, 20, 3]);
    }

    /// The last place is the last one's of whoever has most; who has most finds none.
    #[test]
    fn who_has_most_gives_places_up() {
        let mut queue = queue(&[("many", 1), ("many", 2), ("many", 3), ("many", 4)]);
        assert!(!queue.yields_to(job("many", 5).caller));
        for number in [10, 11] {
            let next = job("one", number);
            assert!(queue.yields_to(next.caller));
            queue.pop_back();
            queue.push(next);
        }
        // Each has half of them.
        assert!(!queue.yields_to(job("one", 12).caller));
        assert!(queue.yields_to(job("other", 20).caller));
        assert_eq!(rest(&mut queue), [1, 10, 2, 11]);
    }

    /// Jobs that nobody waits for, or not any longer, leave those behind them where they were.
    #[test]
    fn the_gone_and_the_late_leave() {
        let mut queue = queue(&[("many", 1), ("many", 2), ("many", 3)]);
        let gone = job("one", 10);
        drop(Waiting(gone.ticket.clone()));
        queue.push(gone);
        queue.forget_gone();
        assert_eq!(queue.len(), 3);
        let late = queue.take_late(Instant::now() + Duration::from_secs(150));
        assert_eq!(late.iter().map(number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(queue.front().map(number), Some(3));
        assert_eq!(queue.take_all().len(), 1);
        assert!(queue.is_empty());
    }
}
