//! Turns a component's bytes into native code, in a child process that the operating system limits. Never on a request's path.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use crate::{
    cache::Cache,
    compile_child,
    connector::{LoadError, Scope},
    options::{Compiler, SandboxLimits},
};

/// How often the child is looked at. Compiling takes tenths of seconds at least.
const POLL: Duration = Duration::from_millis(5);
/// Threads of the compiler: each costs memory out of one budget.
const THREADS_MAX: usize = 4;
/// A child is held to its processor time; on a machine that is busy with requests it may take longer than that.
const WALL_FACTOR: u32 = 5;
/// What a company uploads is compiled behind everything else, also behind the lanes. (At the kernel's idle priority it would
/// wait for ever while another company's guests loop there.)
const COMPANY_NICE: i32 = 15;
/// What is kept of the child's complaints.
const REASON_BYTES_MAX: u64 = 16 << 10;

/// Native code for `wasm`. What is written meanwhile lies beside the cache's. Blocks.
pub(crate) fn compile(
    wasm: &[u8],
    cache: &Cache,
    compiler: &Compiler,
    limits: &SandboxLimits,
    scope: &Scope,
) -> Result<Vec<u8>, LoadError> {
    match compiler {
        Compiler::InProcess => compile_child::compile(wasm).map_err(LoadError::Compile),
        Compiler::Child { program, args } => in_child(wasm, cache, program, args, limits, scope),
    }
}

fn in_child(
    wasm: &[u8],
    cache: &Cache,
    program: &Path,
    args: &[String],
    limits: &SandboxLimits,
    scope: &Scope,
) -> Result<Vec<u8>, LoadError> {
    let failed = |error: io::Error| match compile_child::is_full(&error) {
        true => LoadError::DiskFull(error.to_string()),
        false => LoadError::Compile(format!("{}: {error}", program.display())),
    };
    let mut input = Scratch::new(cache).map_err(failed)?;
    let mut output = Scratch::new(cache).map_err(failed)?;
    let mut reasons = Scratch::new(cache).map_err(failed)?;
    input.file.write_all(wasm).map_err(failed)?;
    input.file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let threads = std::thread::available_parallelism()
        .map_or(1, |count| count.get())
        .min(THREADS_MAX);
    let nice = match scope {
        Scope::Platform => 0,
        Scope::Company(_) => COMPANY_NICE,
    };
    // The host's environment holds its master key: the child gets none of it.
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .env(
            compile_child::MEMORY_VARIABLE,
            limits.compile_memory_bytes.to_string(),
        )
        .env(
            compile_child::CPU_VARIABLE,
            (limits.compile_timeout.as_secs().max(1) * threads as u64).to_string(),
        )
        .env("RAYON_NUM_THREADS", threads.to_string())
        .env(compile_child::NICE_VARIABLE, nice.to_string())
        // Each arena of the allocator reserves address space, which is what is limited.
        .env("MALLOC_ARENA_MAX", "2")
        .stdin(Stdio::from(input.file.try_clone().map_err(failed)?))
        .stdout(Stdio::from(output.file.try_clone().map_err(failed)?))
        .stderr(Stdio::from(reasons.file.try_clone().map_err(failed)?))
        .spawn()
        .map_err(failed)?;
    let status = wait(child, WALL_FACTOR * limits.compile_timeout)
        .map_err(failed)?
        .ok_or_else(|| {
            LoadError::Compile(format!(
                "it took longer than {} s",
                (WALL_FACTOR * limits.compile_timeout).as_secs()
            ))
        })?;
    if !status.success() {
        let reason = reasons.read(REASON_BYTES_MAX).map_err(failed)?;
        let reason = String::from_utf8_lossy(&reason).trim().to_owned();
        if status.code() == Some(i32::from(compile_child::DISK_FULL)) {
            // Its reason lies on the same disk.
            return Err(LoadError::DiskFull(match reason.is_empty() {
                true => "there is no room for native code".to_owned(),
                false => reason,
            }));
        }
        return Err(LoadError::Compile(
            if status.code() == Some(1) && !reason.is_empty() {
                reason
            } else {
                format!("the compiler ran out of its memory or time ({status}) {reason}")
                    .trim_end()
                    .to_owned()
            },
        ));
    }
    output.read(u64::MAX).map_err(failed)
}

fn wait(mut child: Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// A private file that is gone when dropped.
struct Scratch {
    file: File,
    path: PathBuf,
}

impl Scratch {
    fn new(cache: &Cache) -> io::Result<Scratch> {
        let (file, path) = cache.scratch()?;
        Ok(Scratch { file, path })
    }

    fn read(&mut self, max: u64) -> io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::new();
        (&self.file).take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
