//! What a component is given: for wires nothing but randomness, a place to print to and a list of no directories, for directories the part of
//! WASI that reads files. Everything else that a language's runtime left in the binary traps when called, and the trap names it.

use rand::Rng;
use wasmtime::{
    Engine, Result, StoreContextMut,
    component::{
        Component, ComponentType, InstancePre, Linker, LinkerInstance, Lower, Resource,
        ResourceType, WasmList, types::ComponentItem,
    },
};
use wasmtime_wasi::{
    cli::{WasiCli, WasiCliView},
    filesystem::{WasiFilesystem, WasiFilesystemView},
    p2::bindings::{cli, filesystem, random},
    random::{WasiRandom, WasiRandomView},
};

use super::{
    reads,
    state::{DirectoryState, GuestState, RANDOM_BYTES_MAX, WireState},
};
use crate::journal::{CALL_BYTES, Stream};

/// Links a component that speaks over a wire.
pub(crate) fn wire(engine: &Engine, component: &Component) -> Result<InstancePre<WireState>> {
    let mut linker: Linker<WireState> = Linker::new(engine);
    for (name, _) in component.component_type().imports(engine) {
        // The exact imported name: `define_unknown_imports_as_traps` is not semver-aware.
        if name.starts_with("wasi:random/random@") {
            let mut random = linker.instance(name)?;
            random.func_wrap("get-random-bytes", random_bytes)?;
            random.func_wrap("get-random-u64", random_u64)?;
        } else if name.starts_with("wasi:random/insecure@") {
            let mut random = linker.instance(name)?;
            random.func_wrap("get-insecure-random-bytes", random_bytes)?;
            random.func_wrap("get-insecure-random-u64", random_u64)?;
        } else if name.starts_with("wasi:random/insecure-seed@") {
            let mut random = linker.instance(name)?;
            random.func_wrap("insecure-seed", random_seed)?;
            random.func_wrap("get-insecure-seed", random_seed)?;
        } else if name.starts_with("wasi:cli/environment@") {
            let mut environment = linker.instance(name)?;
            environment.func_wrap(
                "get-environment",
                |_: StoreContextMut<'_, WireState>, (): ()| Ok((Vec::<(String, String)>::new(),)),
            )?;
            environment.func_wrap(
                "get-arguments",
                |_: StoreContextMut<'_, WireState>, (): ()| Ok((Vec::<String>::new(),)),
            )?;
            environment.func_wrap(
                "initial-cwd",
                |_: StoreContextMut<'_, WireState>, (): ()| Ok((None::<String>,)),
            )?;
        } else {
            standard_streams(&mut linker, name)?;
        }
    }
    linker.define_unknown_imports_as_traps(component)?;
    linker.instantiate_pre(component)
}

/// The one resource that a wire's guest has handles to: an output stream is its number, a pollable is always ready. (What is not
/// linked is stubbed with the same type, so that one resource has one type wherever it is named.)
type Handle = Resource<()>;
const STDOUT: u32 = 1;
const STDERR: u32 = 2;

#[derive(ComponentType, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[allow(dead_code, reason = "printing does not fail")]
    LastOperationFailed(Handle),
    #[component(name = "closed")]
    #[allow(dead_code, reason = "the streams are never closed")]
    Closed,
}

type Written = (std::result::Result<(), StreamError>,);
type Context<'a> = StoreContextMut<'a, WireState>;

/// Links what printing takes of the interface `name`, if it is one of those, and what a runtime asks before it prints.
fn standard_streams(linker: &mut Linker<WireState>, name: &str) -> Result<()> {
    let Some((interface, version)) = name.split_once('@') else {
        return Ok(());
    };
    // Later versions print through streams of another kind, which nothing grants.
    if !version.starts_with("0.2.") {
        return Ok(());
    }
    let opened = |number: u32| move |_: Context<'_>, (): ()| Ok((Handle::new_own(number),));
    let no_terminal = |_: Context<'_>, (): ()| Ok((None::<Handle>,));
    match interface {
        "wasi:cli/stdout" => linker
            .instance(name)?
            .func_wrap("get-stdout", opened(STDOUT)),
        "wasi:cli/stderr" => linker
            .instance(name)?
            .func_wrap("get-stderr", opened(STDERR)),
        "wasi:cli/terminal-stdin" => {
            let mut terminal = linker.instance(name)?;
            terminal.func_wrap("get-terminal-stdin", no_terminal)
        }
        "wasi:cli/terminal-stdout" => {
            let mut terminal = linker.instance(name)?;
            terminal.func_wrap("get-terminal-stdout", no_terminal)
        }
        "wasi:cli/terminal-stderr" => {
            let mut terminal = linker.instance(name)?;
            terminal.func_wrap("get-terminal-stderr", no_terminal)
        }
        "wasi:cli/exit" => linker.instance(name)?.func_wrap(
            "exit",
            |_: Context<'_>, _: (std::result::Result<(), ()>,)| -> Result<()> {
                wasmtime::bail!("{ENDED_ITSELF}")
            },
        ),
        // An interpreter looks for files where it imports a module or tells of an exception: it finds none, and goes on.
        "wasi:filesystem/preopens" => linker
            .instance(name)?
            .func_wrap("get-directories", |_: Context<'_>, (): ()| {
                Ok((Vec::<(Handle, String)>::new(),))
            }),
        "wasi:io/poll" => pollables(&mut linker.instance(name)?),
        "wasi:io/streams" => output_streams(&mut linker.instance(name)?),
        _ => Ok(()),
    }
}

/// What a guest that exits is stopped with.
pub(crate) const ENDED_ITSELF: &str = "the guest called exit";

fn pollables(io: &mut LinkerInstance<'_, WireState>) -> Result<()> {
    io.func_wrap("[method]pollable.ready", |_: Context<'_>, _: (Handle,)| {
        Ok((true,))
    })?;
    io.func_wrap("[method]pollable.block", |_: Context<'_>, _: (Handle,)| {
        Ok(())
    })?;
    io.func_wrap("poll", |_: Context<'_>, (handles,): (WasmList<Handle>,)| {
        Ok(((0..handles.len() as u32).collect::<Vec<u32>>(),))
    })
}

fn output_streams(io: &mut LinkerInstance<'_, WireState>) -> Result<()> {
    io.func_wrap(
        "[method]output-stream.check-write",
        |_: Context<'_>, _: (Handle,)| Ok((Ok::<u64, StreamError>(CALL_BYTES as u64),)),
    )?;
    for write in [
        "[method]output-stream.write",
        "[method]output-stream.blocking-write-and-flush",
    ] {
        io.func_wrap(write, print)?;
    }
    for flush in [
        "[method]output-stream.flush",
        "[method]output-stream.blocking-flush",
    ] {
        io.func_wrap(flush, |_: Context<'_>, _: (Handle,)| -> Result<Written> {
            Ok((Ok(()),))
        })?;
    }
    io.func_wrap(
        "[method]output-stream.subscribe",
        |_: Context<'_>, (stream,): (Handle,)| Ok((Handle::new_own(stream.rep()),)),
    )
}

fn print(store: Context<'_>, (handle, contents): (Handle, WasmList<u8>)) -> Result<Written> {
    let stream = match handle.rep() {
        STDOUT => Stream::Stdout,
        _ => Stream::Stderr,
    };
    let printer = store.data().printer().clone();
    printer.print(stream, contents.as_le_slice(&store));
    Ok((Ok(()),))
}

/// The function that a guest has called without having been granted it, as the text of its trap names it.
pub(crate) fn not_granted(trap: &str) -> Option<&str> {
    let (_, after) = trap.split_once("unknown import: `")?;
    after.split_once('`').map(|(import, _)| import)
}

/// Links a component that reads one directory. Asynchronous: its guest runs on a fiber, so that a
/// long computation yields. No network.
pub(crate) fn directory(
    engine: &Engine,
    component: &Component,
) -> Result<InstancePre<DirectoryState>> {
    type T = DirectoryState;
    let mut linker: Linker<T> = Linker::new(engine);
    let l = &mut linker;
    // io, clocks, random, and the standard streams.
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(l)?;
    filesystem::types::add_to_linker::<T, WasiFilesystem>(l, T::filesystem)?;
    filesystem::preopens::add_to_linker::<T, WasiFilesystem>(l, T::filesystem)?;
    reads::link(l)?;
    random::insecure::add_to_linker::<T, WasiRandom>(l, T::random)?;
    random::insecure_seed::add_to_linker::<T, WasiRandom>(l, T::random)?;
    cli::environment::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::exit::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_input::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_output::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stdin::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stdout::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stderr::add_to_linker::<T, WasiCli>(l, T::cli)?;
    // Traps for the rest, by interface: one that is linked here under another patch version must not be hidden by them.
    let (mut rest, mut resources) = (Vec::new(), Vec::new());
    for (name, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else {
            continue;
        };
        let exports: Vec<(String, ComponentItem)> = interface
            .exports(engine)
            .map(|(name, item)| (name.to_owned(), item.ty))
            .collect();
        match LINKED.contains(&name.split('@').next().unwrap_or(name)) {
            true => resources.extend(exports.into_iter().filter_map(|(_, item)| match item {
                ComponentItem::Resource(resource) => Some(resource),
                _ => None,
            })),
            false => rest.push((name.to_owned(), exports)),
        }
    }
    for (name, exports) in rest.iter().filter(|(name, _)| name.starts_with("wasi:")) {
        refuse(&mut linker, name, exports, &resources)?;
    }
    linker.instantiate_pre(component)
}

/// The interfaces that a directory's guest is given.
const LINKED: &[&str] = &[
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/wall-clock",
    "wasi:clocks/monotonic-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
];

/// Defines every function of an interface that nothing grants as a trap that names it, and its resources, but for those that it took from a
/// linked one, as ones that nobody has.
fn refuse<T: 'static>(
    linker: &mut Linker<T>,
    name: &str,
    exports: &[(String, ComponentItem)],
    linked: &[ResourceType],
) -> Result<()> {
    let mut instance = linker.instance(name)?;
    for (export, item) in exports {
        match item {
            ComponentItem::ComponentFunc(_) => {
                let function = format!("{name}#{export}");
                instance.func_new(export, move |_, _, _, _| {
                    wasmtime::bail!("unknown import: `{function}` has not been defined")
                })?;
            }
            ComponentItem::Resource(resource) if !linked.contains(resource) => {
                instance.resource(export, ResourceType::host::<()>(), |_, _| Ok(()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn random_bytes(_: StoreContextMut<'_, WireState>, (count,): (u64,)) -> Result<(Vec<u8>,)> {
    if count > RANDOM_BYTES_MAX {
        wasmtime::bail!(
            "{count} random bytes at once are more than the {RANDOM_BYTES_MAX} allowed"
        );
    }
    let mut bytes = vec![0; count as usize];
    rand::rng().fill_bytes(&mut bytes);
    Ok((bytes,))
}

fn random_u64(_: StoreContextMut<'_, WireState>, (): ()) -> Result<(u64,)> {
    Ok((rand::rng().next_u64(),))
}

fn random_seed(_: StoreContextMut<'_, WireState>, (): ()) -> Result<((u64, u64),)> {
    Ok(((rand::rng().next_u64(), rand::rng().next_u64()),))
}
