//! Turns a [`Machine`] into the component's exports.

use crate::bindings::exports::souk::connector::connector::{Guest, GuestSession, Session};
use crate::bindings::publisher::exports::souk::publisher::publications;
use crate::bindings::souk::connector::types::{Input, Request, Settings, Step as Answer};
use crate::{Descriptor, Error, Machine, Step};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

/// Exports an async [`Connector`](crate::Connector) as this crate's component. Natively it expands to
/// nothing, so that the crate's own tests can use the type.
#[macro_export]
macro_rules! export {
    ($connector:ty) => {
        $crate::export_machine!($crate::Driver<$connector>);
    };
}

/// Exports a [`Machine`](crate::Machine) as this crate's component.
#[macro_export]
macro_rules! export_machine {
    ($machine:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type SoukComponent = $crate::Component<$machine>;
    $crate::bindings::export_bindings!(SoukComponent with_types_in $crate::bindings);
        };
    };
}

/// Exports an async [`Publisher`](crate::Publisher) as this crate's component. Natively it expands to nothing.
#[macro_export]
macro_rules! export_publisher {
    ($publisher:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type SoukComponent = $crate::Component<$crate::PublisherDriver<$publisher>>;
            $crate::bindings::publisher::export_publisher_bindings!(SoukComponent with_types_in $crate::bindings::publisher);
        };
    };
}

/// The component that a machine becomes.
pub struct Component<M>(PhantomData<M>);

/// A session as the component model sees it: calls never overlap, so the cell is never busy.
pub struct Held<M> {
    machine: RefCell<M>,
    /// The time of day that the host last told.
    now: Cell<u64>,
}

impl<M> Held<M> {
    fn new(machine: M) -> Held<M> {
        Held {
            machine: RefCell::new(machine),
            now: Cell::new(0),
        }
    }
}

impl<M: Machine> Guest for Component<M> {
    type Session = Held<M>;

    fn describe() -> Descriptor {
        M::describe()
    }
}

impl<M: Machine> GuestSession for Held<M> {
    fn open(settings: Settings) -> Result<Session, Error> {
        Ok(Session::new(Held::new(M::open(settings)?)))
    }

    fn start(&self, now: u64) -> Result<Answer, Error> {
        self.now.set(now);
        self.step(|machine, step| machine.start(step))
    }

    fn submit(&self, id: u32, request: Request, now: u64) -> Result<Answer, Error> {
        self.now.set(now);
        self.step(|machine, step| machine.submit(id, request, step))
    }

    fn receive(&self, input: Input) -> Result<Answer, Error> {
        self.step(|machine, step| machine.receive(input, step))
    }

    fn cancel(&self, id: u32) -> Result<Answer, Error> {
        self.step(|machine, step| machine.cancel(id, step))
    }
}

impl<M: Machine<publications::Request>> publications::Guest for Component<M> {
    type Session = Held<M>;

    fn describe() -> Descriptor {
        M::describe()
    }
}

impl<M: Machine<publications::Request>> publications::GuestSession for Held<M> {
    fn open(settings: Settings) -> Result<publications::Session, Error> {
        let held = Held::new(M::open(settings)?);
        Ok(publications::Session::new(held))
    }

    fn start(&self, now: u64) -> Result<Answer, Error> {
        self.now.set(now);
        self.step(|machine, step| machine.start(step))
    }

    fn submit(&self, id: u32, request: publications::Request) -> Result<Answer, Error> {
        let now = match &request {
            publications::Request::Publish(publication) => publication.now,
            publications::Request::Check(check) => check.now,
        };
        self.now.set(now.div_euclid(1_000_000).max(0) as u64);
        self.step(|machine, step| machine.submit(id, request, step))
    }

    fn receive(&self, input: Input) -> Result<Answer, Error> {
        self.step(|machine, step| machine.receive(input, step))
    }

    fn cancel(&self, id: u32) -> Result<Answer, Error> {
        self.step(|machine, step| machine.cancel(id, step))
    }
}

impl<M> Held<M> {
    #[inline]
    fn step(
        &self,
        act: impl FnOnce(&mut M, &mut Step) -> Result<(), Error>,
    ) -> Result<Answer, Error> {
        let mut step = Step::at(self.now.get());
        act(&mut self.machine.borrow_mut(), &mut step)?;
        let (commands, events) = step.into_parts();
        Ok(Answer { commands, events })
    }
}
