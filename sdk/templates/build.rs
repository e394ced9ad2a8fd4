//! Lists the files of the templates and of the SDK, as bytes: what is added there is in the next build without being named here.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where to"));
    let sdk = here.join("..");

    let mut templates = Vec::new();
    for entry in std::fs::read_dir(&here).expect("this package").flatten() {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        if entry.path().is_dir() && name.contains('-') {
            walk(&entry.path(), &name, &mut templates);
        }
    }
    let mut vendored = Vec::new();
    for name in ["src", "wit"] {
        walk(&sdk.join(name), name, &mut vendored);
    }
    vendored.push(("README.md".to_owned(), sdk.join("README.md")));
    let manifest = out.join("Cargo.toml");
    std::fs::write(&manifest, self::manifest(&sdk)).expect("the output directory");
    vendored.push(("Cargo.toml".to_owned(), manifest));

    let mut source = list("TEMPLATES", templates);
    source.push_str(&list("SDK", vendored));
    std::fs::write(out.join("files.rs"), source).expect("the output directory");
    println!("cargo::rerun-if-changed=.");
    println!("cargo::rerun-if-changed=../src");
    println!("cargo::rerun-if-changed=../../wit");
    println!("cargo::rerun-if-changed=../Cargo.toml");
    println!("cargo::rerun-if-changed=../README.md");
    println!("cargo::rerun-if-changed=../../Cargo.toml");
}

fn walk(directory: &Path, name: &str, found: &mut Vec<(String, PathBuf)>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let file = entry.file_name().into_string().expect("a name in UTF-8");
        // What a build or an installation leaves in a template is none of it.
        if [
            "target",
            "node_modules",
            "__pycache__",
            "Cargo.lock",
            "vendor",
        ]
        .contains(&file.as_str())
        {
            continue;
        }
        let (path, name) = (entry.path(), format!("{name}/{file}"));
        match path.is_dir() {
            true => walk(&path, &name, found),
            false => found.push((name, path)),
        }
    }
}

fn list(name: &str, mut files: Vec<(String, PathBuf)>) -> String {
    files.sort();
    let mut source = format!("pub static {name}: &[(&str, &[u8])] = &[\n");
    for (name, path) in files {
        let _ = writeln!(source, "    ({name:?}, include_bytes!({path:?})),");
    }
    source.push_str("];\n");
    source
}

/// The SDK's manifest with what it inherits from this workspace written out, as `cargo package` does.
fn manifest(sdk: &Path) -> String {
    let read = |path: PathBuf| -> toml::Table {
        let text = std::fs::read_to_string(path).expect("a manifest");
        text.parse().expect("TOML")
    };
    let mut manifest = read(sdk.join("Cargo.toml"));
    let mut workspace = read(sdk.join("../Cargo.toml"));
    let workspace = workspace["workspace"]
        .as_table_mut()
        .expect("the workspace");
    let is_inherited = |value: &toml::Value| {
        let table = value.as_table();
        table.is_some_and(|table| table.get("workspace") == Some(&true.into()))
    };
    for (section, inherited) in [("package", "package"), ("dependencies", "dependencies")] {
        let inherited = workspace[inherited].as_table().expect("a table").clone();
        let section = manifest[section].as_table_mut().expect("a table");
        for (name, value) in section.iter_mut() {
            if is_inherited(value) {
                *value = inherited[name].clone();
            }
        }
    }
    manifest.remove("dev-dependencies");
    manifest.remove("lints");
    format!("# Written by `souk connector new`.\n{manifest}")
}
