//! The search on machines that are made up: programs are small scripts in a directory of the test's
//! own, which is all that is on the `PATH`. Nothing of the real machine is found, and nothing is fetched.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// A program is busy while any process has it open for writing, and a child that another thread is
/// about to start inherits what is open: so only one test at a time writes programs and starts them.
static STARTING: Mutex<()> = Mutex::new(());

/// Says which program was started, and with what.
const SAYS: &str = r#"echo "${0##*/} $*""#;

/// `python3 -m ziglang`, if `ziglang` is 0; `pip install --target DIR NAME`, if `pip` is 0; `-m venv DIR`,
/// if `venv` is 0, with a pip that works.
const PYTHON: &str = r#"
case "$2 $3" in
  "ziglang version") exit $ziglang ;;
  "ziglang "*) echo "python3 $*" ;;
  "pip install")
    [ $pip = 0 ] && exec "$root/pip" "$@"
    printf 'Traceback:\n  a long story\nno pip for you\n\n' >&2
    exit 1 ;;
  "venv "*)
    [ $venv = 0 ] || exit 1
    /bin/mkdir -p "$3/bin" && /bin/cp "$root/pip" "$3/bin/python" ;;
esac"#;

/// Installs a zig that says under which name it was asked for.
const PIP: &str = r#"
while [ "$1" != --target ]; do shift; done
/bin/mkdir -p "$2/ziglang"
printf '#!/bin/sh\necho "%s $*"\n' "$3" >"$2/ziglang/zig"
/bin/chmod 755 "$2/ziglang/zig""#;

/// A machine that has what a test gives it.
struct Fake {
    machine: Machine,
    directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Fake {
    fn bare() -> Fake {
        let alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine {
            variables: BTreeMap::new(),
            root: directory.path().join("root"),
        };
        let fake = Fake {
            machine,
            directory,
            _alone: alone,
        };
        fs::create_dir_all(fake.bin()).unwrap();
        fake.script("root/pip", PIP);
        let path = fake.bin();
        fake.set("PATH", path)
    }

    fn bin(&self) -> PathBuf {
        self.directory.path().join("bin")
    }

    fn tools(&self) -> PathBuf {
        self.directory.path().join("tools")
    }

    fn script(&self, place: &str, text: &str) {
        let path = self.directory.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn set(mut self, variable: &str, value: impl Into<OsString>) -> Fake {
        self.machine.variables.insert(variable.into(), value.into());
        self
    }

    /// A program on the `PATH`.
    fn program(self, name: &str, text: &str) -> Fake {
        self.script(&format!("bin/{name}"), text);
        self
    }

    fn without(self, name: &str) -> Fake {
        fs::remove_file(self.bin().join(name)).unwrap();
        self
    }

    /// A clang of this version, which finds the headers when it is given these words; `""`: always.
    fn clang(self, place: &str, version: &str, words: &str) -> Fake {
        let text = format!(
            r#"case "$*" in
  --version) echo "Fake clang version {version} (for tests)" ;;
  *"{words}"*) {SAYS} ;;
  *) echo "'stdio.h' file not found" >&2; exit 1 ;;
esac"#
        );
        self.script(place, &text);
        self
    }

    fn python(self, ziglang: bool, pip: bool, venv: bool) -> Fake {
        let code = |works: bool| i32::from(!works);
        let text = format!(
            "ziglang={} pip={} venv={} root='{}'{PYTHON}",
            code(ziglang),
            code(pip),
            code(venv),
            self.machine.root.display()
        );
        self.program("python3", &text)
    }

    fn search(&self) -> Result<CCompiler, BuildError> {
        search(&self.machine, &self.tools())
    }

    /// Starts the compiler that was found as cc-rs would, and returns what it says.
    fn compile(&self) -> String {
        let found = self.search().unwrap();
        let mut command = self.machine.command(&found.cc);
        command
            .args(found.flags.split_whitespace())
            .args(["--target=wasm32-wasip2", "-c", "x.c"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{found:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What is in the tools' directory besides the wrappers and the probe.
    fn left_behind(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tools()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let expected = ["bin", "probe.c", "probe.o", "ziglang-0.17.0"];
        names
            .filter(|name| !expected.contains(&name.as_str()))
            .collect()
    }
}

const BY_CLANG: &str = "--target=wasm32-wasip2 -c x.c";
const BY_ZIG: &str = "cc -target wasm32-wasi -fno-sanitize=undefined -c x.c";

/// The nearest compiler is taken, and each of the others only when those before it are gone.
#[test]
fn compilers_are_tried_in_order() {
    let machine = Fake::bare()
        .set("CC_wasm32_wasip2", "my-cc")
        .program("my-cc", SAYS)
        .clang("bin/clang", "16.0.6", "")
        .program("zig", SAYS)
        .python(true, true, true);
    assert_eq!(machine.compile(), format!("my-cc {BY_CLANG}"));
    // Empty is as good as not set.
    let machine = machine.set("CC_wasm32_wasip2", "");
    assert_eq!(machine.compile(), format!("clang {BY_CLANG}"));
    let machine = machine.without("clang");
    assert_eq!(machine.compile(), format!("zig {BY_ZIG}"));
    let machine = machine.without("zig");
    assert_eq!(machine.compile(), format!("python3 -m ziglang {BY_ZIG}"));
    // Nothing is fetched while there is something nearer.
    assert!(!machine.tools().join("ziglang-0.17.0").exists());
    let machine = machine.python(false, true, true);
    assert_eq!(machine.compile(), format!("ziglang==0.17.0 {BY_ZIG}"));
}

/// Clang before 16 is passed over, whatever it is called; the newest of those that are numbered is taken.
#[test]
fn an_old_clang_is_passed_over() {
    let machine = Fake::bare()
        .clang("bin/clang", "15.0.7", "")
        .program("zig", SAYS);
    assert_eq!(machine.compile(), format!("zig {BY_ZIG}"));
    let machine = machine.clang("bin/clang-16", "16.0.0", "");
    assert_eq!(machine.compile(), format!("clang-16 {BY_CLANG}"));
    let machine = machine.clang("bin/clang-19", "19.1.7", "");
    assert_eq!(machine.compile(), format!("clang-19 {BY_CLANG}"));
    // What goes by the name of clang may be another compiler.
    let machine = machine.program("clang", "echo 'gcc (Debian 14.2.0) 14.2.0'");
    assert_eq!(machine.compile(), format!("clang-19 {BY_CLANG}"));
}

/// A clang that does not find wasi-libc's headers compiles nothing: another one or zig is taken.
#[test]
fn a_clang_without_the_headers_is_passed_over() {
    let machine = Fake::bare()
        .clang("bin/clang", "18.1.3", "--sysroot=/nowhere")
        .program("zig", SAYS);
    assert_eq!(machine.compile(), format!("zig {BY_ZIG}"));
    let machine = machine.clang("bin/clang-17", "17.0.6", "");
    assert_eq!(machine.compile(), format!("clang-17 {BY_CLANG}"));
}

/// Headers that lie elsewhere are found where they commonly are, and cc-rs is told the same flags.
#[test]
fn the_headers_are_found_where_they_commonly_are() {
    let mut machine = Fake::bare().set("CFLAGS_wasm32_wasip2", "-O2");
    let root = machine.machine.root.clone();
    let debian = format!(
        "-isystem {}",
        root.join("usr/include/wasm32-wasi").display()
    );
    machine = machine.clang("bin/clang", "19.1.7", &debian);
    assert_eq!(
        machine.compile(),
        format!("clang {debian} -O2 --target=wasm32-wasip2 -c x.c")
    );
    let named = root.join("somewhere");
    machine = machine.set("WASI_SYSROOT", named.clone());
    for place in [
        root.join("usr/share/wasi-sysroot"),
        root.join("opt/wasi-sdk/share/wasi-sysroot"),
        named,
    ] {
        fs::create_dir_all(&place).unwrap();
        let flag = format!("--sysroot={}", place.display());
        machine = machine.clang("bin/clang", "19.1.7", &flag);
        assert_eq!(
            machine.compile(),
            format!("clang {flag} -O2 --target=wasm32-wasip2 -c x.c")
        );
    }
    // The compiler that comes with a sysroot knows it by itself.
    machine = machine.clang("root/opt/wasi-sdk/bin/clang", "20.1.8-wasi-sdk", "");
    assert_eq!(
        machine.search().unwrap().cc,
        root.join("opt/wasi-sdk/bin/clang")
    );
}

/// A zig that does not start is passed over.
#[test]
fn a_broken_zig_is_passed_over() {
    let machine = Fake::bare()
        .program("zig", "exit 1")
        .python(true, false, false);
    assert_eq!(machine.compile(), format!("python3 -m ziglang {BY_ZIG}"));
}

/// Zig is fetched by a Python without pip too, once for all builds, and again if it does not start.
#[test]
fn zig_is_fetched_once() {
    let machine = Fake::bare().python(false, false, true);
    assert_eq!(machine.compile(), format!("ziglang==0.17.0 {BY_ZIG}"));
    let machine = machine.without("python3");
    assert_eq!(machine.compile(), format!("ziglang==0.17.0 {BY_ZIG}"));
    assert_eq!(machine.left_behind(), [""; 0]);
    machine.script("tools/ziglang-0.17.0/ziglang/zig", "exit 1");
    let machine = machine.python(false, true, false);
    assert_eq!(machine.compile(), format!("ziglang==0.17.0 {BY_ZIG}"));
    assert_eq!(machine.left_behind(), [""; 0]);
}

/// When nothing will do, one line says what was tried and what to install.
#[test]
fn without_any_compiler_one_line_says_what_to_do() {
    let refused = |machine: Fake| {
        let message = machine.search().unwrap_err().to_string();
        assert_eq!(machine.left_behind(), [""; 0]);
        let tried = message
            .strip_prefix("no C compiler for WebAssembly (CC_wasm32_wasip2 is not set, no clang or zig on the path will do, fetching ziglang==0.17.0 failed: ")
            .unwrap_or_else(|| panic!("{message}"));
        let (reasons, advice) = tried.split_once("): ").unwrap();
        assert_eq!(
            advice,
            "install zig, or clang 16 or later with wasi-libc, or Python 3 with pip and network access, or set CC_wasm32_wasip2"
        );
        reasons.to_owned()
    };
    assert_eq!(
        refused(Fake::bare()),
        "python3: No such file or directory (os error 2); python3 -m venv failed"
    );
    let machine = Fake::bare()
        .clang("bin/clang", "15.0.7", "")
        .clang("bin/clang-19", "19.1.7", "--sysroot=/nowhere")
        .program("zig", "exit 1")
        .python(false, false, false);
    assert_eq!(refused(machine), "no pip for you; python3 -m venv failed");
    let machine = Fake::bare().python(false, true, false);
    machine.script("root/pip", &PIP.replace("#!/bin/sh", "#!/no/such/loader"));
    assert_eq!(refused(machine), "it was installed, but does not start");
}

/// The archiver is the one that was named, else llvm-ar beside the compiler or on the path, else ar.
#[test]
fn an_archiver_is_found_for_the_compiler() {
    let machine = Fake::bare().clang("bin/clang", "19.1.7", "");
    assert_eq!(machine.search().unwrap().ar, Path::new("ar"));
    let machine = machine.program("llvm-ar", SAYS);
    assert_eq!(machine.search().unwrap().ar, Path::new("llvm-ar"));
    machine.script("root/cross/llvm-ar", SAYS);
    let cross = machine.machine.root.join("cross");
    let machine = machine.set("CC_wasm32_wasip2", cross.join("cc"));
    assert_eq!(machine.search().unwrap().ar, cross.join("llvm-ar"));
    let machine = machine.set("AR_wasm32_wasip2", "my-ar");
    assert_eq!(machine.search().unwrap().ar, Path::new("my-ar"));
}

#[test]
fn clang_versions_are_read_from_what_clang_says() {
    assert_eq!(
        parse_clang_major("Debian clang version 16.0.6 (15~deb12u1)\nTarget: x86_64"),
        Some(16)
    );
    assert_eq!(
        parse_clang_major("clang version 19.1.5-wasi-sdk (https://github.com/llvm)"),
        Some(19)
    );
    assert_eq!(parse_clang_major("gcc (Debian 12.2.0-14) 12.2.0"), None);
}

/// The wrapper drops the target that zig does not know and keeps every other word as it is.
#[test]
fn the_wrapper_replaces_the_target_only() {
    let machine = Fake::bare().program("zig", r#"for word do echo "$word"; done"#);
    let found = machine.search().unwrap();
    let mut command = machine.machine.command(&found.cc);
    command.args(["-O3", "--target=wasm32-wasip2", "-DA=b  c", "x.c"]);
    let output = command.output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "cc\n-target\nwasm32-wasi\n-fno-sanitize=undefined\n-O3\n-DA=b  c\nx.c"
    );
}
