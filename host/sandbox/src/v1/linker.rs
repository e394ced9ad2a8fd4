//! What a component is given: for wires nothing but randomness, for directories the part of WASI
//! that reads files. Everything else that a language's runtime left in the binary traps when called.

use rand::Rng;
use wasmtime::{
    Engine, Result, StoreContextMut,
    component::{Component, InstancePre, Linker},
};
use wasmtime_wasi::{
    cli::{WasiCli, WasiCliView},
    filesystem::{WasiFilesystem, WasiFilesystemView},
    p2::bindings::{cli, filesystem, random},
    random::{WasiRandom, WasiRandomView},
};

use super::state::{DirectoryState, WireState};

/// Random bytes that one call may ask for: no protocol needs more at once.
const RANDOM_BYTES_MAX: u64 = 64 << 10;

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
        }
    }
    linker.define_unknown_imports_as_traps(component)?;
    linker.instantiate_pre(component)
}

/// Links a component that reads one directory. Asynchronous: its guest runs on a fiber, so that a
/// long computation yields. No network, and standard streams that lead nowhere.
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
    random::insecure::add_to_linker::<T, WasiRandom>(l, T::random)?;
    random::insecure_seed::add_to_linker::<T, WasiRandom>(l, T::random)?;
    cli::environment::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::exit::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_input::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_output::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stdin::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stdout::add_to_linker::<T, WasiCli>(l, T::cli)?;
    cli::terminal_stderr::add_to_linker::<T, WasiCli>(l, T::cli)?;
    // No traps for the rest: they are defined under exact names and would hide what is linked here
    // under another patch version. All that `inspect` tolerates is linked.
    linker.instantiate_pre(component)
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
