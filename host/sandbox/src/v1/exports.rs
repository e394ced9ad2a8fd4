//! The functions that a guest exports: where they are in a component, and how they are called in an instance of it. Start reading at [`Exports::find`].

use wasmtime::{
    AsContextMut,
    component::{Component, ComponentExportIndex, Func, Instance, ResourceAny, TypedFunc},
};

use super::types::{GuestError, Input, Settings, Step};
use crate::request::{ConnectorRequest, PublisherRequest, Request};

/// Which contract a guest keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    Connector,
    Publisher,
}

impl World {
    pub const ALL: [World; 2] = [World::Connector, World::Publisher];

    /// The interface that its guests export, without its version.
    pub fn interface(self) -> &'static str {
        match self {
            World::Connector => "souk:connector/connector",
            World::Publisher => "souk:publisher/publications",
        }
    }
}

/// Where the functions of the interface are in one component.
#[derive(Clone)]
pub(crate) struct Exports {
    world: World,
    pub(super) describe: ComponentExportIndex,
    open: ComponentExportIndex,
    start: ComponentExportIndex,
    submit: ComponentExportIndex,
    receive: ComponentExportIndex,
    cancel: ComponentExportIndex,
}

pub(super) type StepResult = (Result<Step, GuestError>,);
type Open<'a> = TypedFunc<(Settings<'a>,), (Result<ResourceAny, GuestError>,)>;
/// The last parameter is the time of day, in seconds.
type Start = TypedFunc<(ResourceAny, u64), StepResult>;
type Submit<'a> = TypedFunc<(ResourceAny, u32, ConnectorRequest<'a>, u64), StepResult>;
type SubmitToPublisher<'a> = TypedFunc<(ResourceAny, u32, PublisherRequest<'a>), StepResult>;
type Receive<'a> = TypedFunc<(ResourceAny, Input<'a>), StepResult>;
type Cancel = TypedFunc<(ResourceAny, u32), StepResult>;

impl Exports {
    /// `interface` is the exported name with its version. `None`: a function is missing.
    pub fn find(component: &Component, world: World, interface: &str) -> Option<Exports> {
        let (_, instance) = component.get_export(None, interface)?;
        let function = |name: &str| {
            component
                .get_export(Some(&instance), name)
                .map(|(_, index)| index)
        };
        Some(Exports {
            world,
            describe: function("describe")?,
            open: function("[static]session.open")?,
            start: function("[method]session.start")?,
            submit: function("[method]session.submit")?,
            receive: function("[method]session.receive")?,
            cancel: function("[method]session.cancel")?,
        })
    }

    pub fn world(&self) -> World {
        self.world
    }

    /// The functions in one instance. Their types are checked against the contract here, each time,
    /// so that the calls below may leave it out.
    pub(super) fn resolve<T: 'static>(
        &self,
        mut store: impl AsContextMut<Data = T>,
        instance: &Instance,
    ) -> wasmtime::Result<Functions> {
        let mut store = store.as_context_mut();
        Ok(Functions {
            open: *instance
                .get_typed_func::<(Settings<'static>,), (Result<ResourceAny, GuestError>,)>(
                    &mut store, &self.open,
                )?
                .func(),
            start: instance.get_typed_func(&mut store, self.start)?,
            world: self.world,
            submit: match self.world {
                World::Connector => *instance
                    .get_typed_func::<(ResourceAny, u32, ConnectorRequest<'static>, u64), StepResult>(
                        &mut store,
                        &self.submit,
                    )?
                    .func(),
                World::Publisher => *instance
                    .get_typed_func::<(ResourceAny, u32, PublisherRequest<'static>), StepResult>(
                        &mut store,
                        &self.submit,
                    )?
                    .func(),
            },
            receive: *instance
                .get_typed_func::<(ResourceAny, Input<'static>), StepResult>(
                    &mut store,
                    &self.receive,
                )?
                .func(),
            cancel: instance.get_typed_func(&mut store, self.cancel)?,
        })
    }
}

pub(super) struct Functions {
    world: World,
    open: Func,
    pub(super) start: Start,
    submit: Func,
    receive: Func,
    pub(super) cancel: Cancel,
}

/// A request as the guest of one world takes it.
pub(super) enum Asked<'a> {
    Connector(ConnectorRequest<'a>),
    Publisher(PublisherRequest<'a>),
    /// A request of the other world. `Sandbox` refuses those before they reach a session.
    Nobody,
}

pub(super) const NOT_ASKED: &str = "a guest of this world is not asked that";

impl Functions {
    #[inline]
    pub(super) fn asked<'a>(&self, request: &'a Request) -> Asked<'a> {
        match self.world {
            World::Connector => request.of_connector().map(Asked::Connector),
            World::Publisher => request.of_publisher().map(Asked::Publisher),
        }
        .unwrap_or(Asked::Nobody)
    }
}

// The same types as in `resolve`, with another lifetime: nothing is left to check.
#[allow(unsafe_code)]
impl Functions {
    pub(super) fn open<'a>(&self) -> Open<'a> {
        // SAFETY: `resolve` has checked the type of this function.
        unsafe { TypedFunc::new_unchecked(self.open) }
    }

    #[inline]
    pub(super) fn submit<'a>(&self) -> Submit<'a> {
        // SAFETY: `resolve` has checked the type of this function.
        unsafe { TypedFunc::new_unchecked(self.submit) }
    }

    pub(super) fn submit_to_publisher<'a>(&self) -> SubmitToPublisher<'a> {
        // SAFETY: `resolve` has checked the type of this function, of a publisher: who calls it has looked.
        unsafe { TypedFunc::new_unchecked(self.submit) }
    }

    #[inline]
    pub(super) fn receive<'a>(&self) -> Receive<'a> {
        // SAFETY: `resolve` has checked the type of this function.
        unsafe { TypedFunc::new_unchecked(self.receive) }
    }
}
