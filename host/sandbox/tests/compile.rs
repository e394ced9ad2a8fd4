//! Compiling in a child process, and the cache of native code. Its own `main`: the test binary is
//! also the compiler's child.

mod common;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::ExitCode, time::Duration};

use common::*;
use sha2::{Digest, Sha256};
use souk_sandbox::{Compiler, ConnectorInfo, LoadError, Sandbox, Scope};
use souk_tests::guests;
use tempfile::TempDir;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [word] if word == "compile" => return souk_sandbox::compile_child::main(),
        [word, alone] if word == "compile-alone" => return compile_alone(alone),
        _ => {}
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        compiled_code_is_kept_and_authenticated().await;
        a_compiler_without_memory_or_time_is_named().await;
        a_full_disk_is_not_the_components_fault().await;
        a_cold_start_compiles_one_at_a_time().await;
    });
    println!("compile: ok");
    ExitCode::SUCCESS
}

/// Refuses to compile while another one does: that is so while this directory is there.
fn compile_alone(alone: &str) -> ExitCode {
    if let Err(error) = fs::create_dir(alone) {
        eprintln!("another component is compiled: {error}");
        return ExitCode::FAILURE;
    }
    let done = souk_sandbox::compile_child::main();
    fs::remove_dir(alone).unwrap();
    done
}

fn child(directory: &TempDir) -> souk_sandbox::Options {
    let mut options = options(directory);
    options.compiler = Compiler::Child {
        program: std::env::current_exe().unwrap(),
        args: vec!["compile".into()],
    };
    options
}

/// The second start compiles nothing; a file that was tampered with is compiled anew, not run.
async fn compiled_code_is_kept_and_authenticated() {
    let directory = TempDir::new().unwrap();
    let compile_ms = |sandbox: Sandbox| async move {
        let info = sandbox
            .load(guests::FIXED_ROWS, Scope::Platform)
            .await
            .unwrap();
        sandbox
            .activate(&Scope::Platform, &info.name, &info.version)
            .await
            .unwrap();
        run(&sandbox, &source("fixed"), "select 1").await.unwrap();
        info.compile_ms
    };
    let start = || Sandbox::new(child(&directory)).unwrap();
    // Not by its digest alone, before.
    let kept = async || {
        let digest = hex::encode(Sha256::digest(guests::FIXED_ROWS));
        start().load_kept(&digest, Scope::Platform).await
    };
    assert!(matches!(kept().await, Err(LoadError::NotKept)));
    let named = start().load_kept("../cache", Scope::Platform).await;
    assert!(matches!(named, Err(LoadError::NotKept)));
    assert!(compile_ms(start()).await > 0);
    assert_eq!(compile_ms(start()).await, 0);
    let by_digest = kept().await.unwrap();
    let sandbox = start();
    let by_bytes = sandbox.load(guests::FIXED_ROWS, Scope::Platform);
    let by_bytes = by_bytes.await.unwrap();
    let told = |info: &ConnectorInfo| {
        let info = info.clone();
        let outside = (info.imports, info.exports, info.warnings, info.size_bytes);
        (info.name, info.digest, info.wit_version, outside)
    };
    assert_eq!(told(&by_digest), told(&by_bytes));
    let cache = directory.path().join("cache");
    assert_eq!(
        fs::metadata(&cache).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(
        fs::metadata(cache.join("cache.key"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    let files = |extension: &str| -> Vec<PathBuf> {
        let paths = fs::read_dir(&cache)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .collect()
    };
    let [compiled] = &files("cwasm")[..] else {
        panic!("one file of native code")
    };
    // It is run where it lies.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let name = compiled.to_string_lossy();
    let mut runs = maps.lines().filter(|line| line.contains("r-xp"));
    assert!(runs.any(|line| line.ends_with(&*name)), "{maps}");
    let spoil = |bytes: &[u8]| {
        fs::remove_file(compiled).unwrap();
        fs::write(compiled, bytes).unwrap();
        fs::set_permissions(compiled, PermissionsExt::from_mode(0o600)).unwrap();
    };
    let mut bytes = fs::read(compiled).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    spoil(&bytes);
    assert!(compile_ms(start()).await > 0);
    spoil(b"short");
    assert!(matches!(kept().await, Err(LoadError::NotKept)));
    assert!(compile_ms(start()).await > 0);
    // Another host's key vouches for nothing here.
    fs::write(cache.join("cache.key"), [7; 32]).unwrap();
    assert!(compile_ms(start()).await > 0);
    assert!(files("tmp").is_empty());
}

/// A compiler that hits a limit is refused in words; the host goes on.
async fn a_compiler_without_memory_or_time_is_named() {
    for (memory, timeout) in [
        (16 << 20, Duration::from_secs(60)),
        (4 << 30, Duration::from_millis(1)),
    ] {
        let directory = TempDir::new().unwrap();
        let mut options = child(&directory);
        options.limits.compile_memory_bytes = memory;
        options.limits.compile_timeout = timeout;
        let sandbox = Sandbox::new(options).unwrap();
        let error = sandbox
            .load(guests::FIXED_ROWS, Scope::Platform)
            .await
            .unwrap_err();
        assert!(matches!(error, LoadError::Compile(_)), "{error}");
        println!("{error}");
    }
}

/// Native code that finds no room where it is written says so: nothing is wrong with the component.
async fn a_full_disk_is_not_the_components_fault() {
    let directory = TempDir::new().unwrap();
    let mut options = child(&directory);
    options.compiler = Compiler::Child {
        program: "/bin/sh".into(),
        args: vec![
            "-c".into(),
            "exec \"$0\" compile >/dev/full".into(),
            std::env::current_exe().unwrap().display().to_string(),
        ],
    };
    let sandbox = Sandbox::new(options).unwrap();
    let error = sandbox
        .load(guests::FIXED_ROWS, Scope::Platform)
        .await
        .unwrap_err();
    assert!(matches!(error, LoadError::DiskFull(_)), "{error}");
}

/// What a start finds compiled is loaded at once; what it does not is compiled one after the other.
async fn a_cold_start_compiles_one_at_a_time() {
    let directory = TempDir::new().unwrap();
    let alone = directory.path().join("alone");
    let mut options = child(&directory);
    options.compiler = Compiler::Child {
        program: std::env::current_exe().unwrap(),
        args: vec!["compile-alone".into(), alone.display().to_string()],
    };
    let start = || Sandbox::new(options.clone()).unwrap();
    let all = [
        ("fixed-rows", guests::FIXED_ROWS),
        ("small-table", guests::SMALL_TABLE),
        ("careless-lines", guests::CARELESS_LINES),
    ];
    let cold = start();
    for loaded in cold.load_all(&all).await {
        assert!(loaded.unwrap().compile_ms > 0);
    }
    // Whoever wants to compile is refused.
    fs::create_dir(&alone).unwrap();
    let warm = start();
    for loaded in warm.load_all(&all).await {
        assert_eq!(loaded.unwrap().compile_ms, 0);
    }
}
