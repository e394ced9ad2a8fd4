//! Reads a component's imports and exports before anything of it is compiled or run, and says in
//! plain words why it cannot be a connector or a publisher here.

use serde::{Deserialize, Serialize};
use wasmparser::{Instance, Parser, Payload};

use crate::{
    connector::LoadError,
    engine::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX},
    v1::World,
};

/// The versions of `souk:connector` and `souk:publisher` that this host serves.
const SERVED_MAJOR: u64 = 1;
const SERVED_MINOR_MAX: u64 = 0;
const SERVED: &str = "1.0";

/// What a component says about itself without running.
#[derive(Debug)]
pub(crate) struct Inspection {
    pub imports: Vec<String>,
    pub exports: Vec<String>,
    pub world: World,
    /// The exported interface with its version: `souk:connector/connector@1.0.0`.
    pub interface: String,
    pub wit_version: String,
    /// What its author may not have meant.
    pub warnings: Vec<String>,
    pub size_bytes: u64,
}

/// What a language's runtime leaves in a binary. What a grant covers of it is linked, the rest traps when it is called.
const TOLERATED: &str = "wasi:";
/// Packages of which a grant covers something.
const GRANTED: &[&str] = &[
    "wasi:cli",
    "wasi:io",
    "wasi:clocks",
    "wasi:filesystem",
    "wasi:random",
];

/// What people call the things that no grant covers.
const REFUSED: &[(&str, &str)] = &[
    (
        "wasi:sockets",
        "to open network connections by itself; the host owns every wire",
    ),
    (
        "wasi:http",
        "to make HTTP requests by itself; the host owns every wire",
    ),
    ("wasi:keyvalue", "a key-value store"),
    ("wasi:blobstore", "a blob store"),
    ("wasi:config", "the host's configuration"),
    ("wasi:nn", "machine-learning models of the host"),
    ("wasi:messaging", "message queues of the host"),
    ("wasi:threads", "threads"),
];

/// What a component is outside of its code: all that is judged before it is compiled. It is kept beside the code: where it comes to mean something else,
/// the cache has another `FORMAT`.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outside {
    imports: Vec<String>,
    exports: Vec<String>,
    counts: Counts,
    pub size_bytes: u64,
}

impl Outside {
    /// Refuses what is no component.
    pub fn of(wasm: &[u8]) -> Result<Outside, LoadError> {
        let invalid = |reason: String| Err(LoadError::Invalid(reason));
        if Parser::is_core_wasm(wasm) {
            return invalid(
                "this is a core WebAssembly module, not a component: build it for wasm32-wasip2 or wrap it with `wasm-tools component new`".into(),
            );
        }
        if !Parser::is_component(wasm) {
            return invalid("this file is not a WebAssembly component".into());
        }
        read(wasm)
            .map_err(|error| LoadError::Invalid(format!("this component is damaged: {error}")))
    }

    /// Refuses what cannot be a connector.
    pub fn inspect(&self) -> Result<Inspection, LoadError> {
        let Outside {
            imports, exports, ..
        } = self;
        let invalid = |reason: String| Err(LoadError::Invalid(reason));
        let found = World::ALL.into_iter().find_map(|world| {
            let is_it = |name: &&String| name.split('@').next() == Some(world.interface());
            Some((world, exports.iter().find(is_it)?.clone()))
        });
        let Some((world, interface)) = found else {
            let exports = if exports.is_empty() {
                "nothing".to_owned()
            } else {
                exports.join(", ")
            };
            return invalid(format!(
                "this component is for another world: it exports {exports}, a connector exports {}, a publisher {}",
                World::Connector.interface(),
                World::Publisher.interface()
            ));
        };
        let wit_version = interface
            .split_once('@')
            .map_or("0", |(_, version)| version)
            .to_owned();
        let package = interface.split('/').next().unwrap_or_default();
        check_version(package, &wit_version)?;
        for import in imports {
            check_import(import)?;
        }
        self.counts.check()?;
        Ok(Inspection {
            imports: imports.clone(),
            exports: exports.clone(),
            world,
            interface,
            wit_version,
            warnings: refused(imports),
            size_bytes: self.size_bytes,
        })
    }
}

fn check_version(package: &str, version: &str) -> Result<(), LoadError> {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().ok());
    let (major, minor) = (parts.next().flatten(), parts.next().flatten());
    if major == Some(SERVED_MAJOR)
        && minor.is_some_and(|minor| (0..=SERVED_MINOR_MAX).contains(&minor))
    {
        return Ok(());
    }
    let built = match (major, minor) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => version.to_owned(),
    };
    Err(LoadError::Invalid(format!(
        "built for {package} {built}, this host serves {SERVED}: rebuild with sdk {SERVED} or upgrade the host"
    )))
}

fn check_import(import: &str) -> Result<(), LoadError> {
    let package = import
        .split('/')
        .next()
        .unwrap_or(import)
        .split('@')
        .next()
        .unwrap_or(import);
    // Types only: what `use` leaves behind.
    if package == "souk:connector" && import.starts_with("souk:connector/types") {
        return Ok(());
    }
    if package.starts_with(TOLERATED) {
        return Ok(());
    }
    Err(LoadError::Invalid(format!(
        "this component imports {import}: it wants something that this host does not have"
    )))
}

/// What is told about imports that nothing grants, package by package: a runtime that has one function of a package imports all of it.
fn refused(imports: &[String]) -> Vec<String> {
    let mut packages: Vec<(&str, Vec<&str>)> = Vec::new();
    for import in imports {
        let package = import.split(['/', '@']).next().unwrap_or(import);
        if !package.starts_with(TOLERATED) || GRANTED.contains(&package) {
            continue;
        }
        match packages.iter_mut().find(|(known, _)| *known == package) {
            Some((_, names)) => names.push(import),
            None => packages.push((package, vec![import])),
        }
    }
    let told = |(package, names): &(&str, Vec<&str>)| {
        let wants = REFUSED
            .iter()
            .find(|(name, _)| name == package)
            .map_or("something that this host does not have", |(_, wants)| wants);
        format!(
            "it imports {}: that wants {wants}. No grant covers it, and a call traps",
            names.join(", ")
        )
    };
    packages.iter().map(told).collect()
}

/// What a component is made of, as far as the pool has a bound for it.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts {
    instances: usize,
    memories: usize,
    tables: usize,
}

impl Counts {
    fn check(&self) -> Result<(), LoadError> {
        for (what, count, max) in [
            ("core module instances", self.instances, INSTANCES_MAX),
            ("memories", self.memories, MEMORIES_MAX),
            ("tables", self.tables, TABLES_MAX),
        ] {
            if count > max {
                return Err(LoadError::Invalid(format!(
                    "this component has {count} {what}, and may have {max}"
                )));
            }
        }
        Ok(())
    }
}

/// The names of the outermost component's imports and exports, and how much there is in it. (A component inside it that is instantiated twice
/// counts once; the pool counts again when it is compiled.)
fn read(wasm: &[u8]) -> wasmparser::Result<Outside> {
    let mut outside = Outside {
        size_bytes: wasm.len() as u64,
        ..Outside::default()
    };
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    outside.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    outside.exports.push(export?.name.name.to_owned());
                }
            }
            Payload::InstanceSection(section) => {
                for instance in section {
                    if matches!(instance?, Instance::Instantiate { .. }) {
                        outside.counts.instances += 1;
                    }
                }
            }
            Payload::MemorySection(section) => outside.counts.memories += section.count() as usize,
            Payload::TableSection(section) => outside.counts.tables += section.count() as usize,
            _ => {}
        }
    }
    Ok(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTOR: &str = "souk:connector";

    /// A version outside the served range is refused with what to do about it.
    #[test]
    fn versions_are_served_or_explained() {
        assert!(check_version(CONNECTOR, "1.0.0").is_ok());
        assert!(check_version(CONNECTOR, "1.0.7").is_ok());
        for odd in ["2.0.0", "1.1.0", "0.9.0", "0", "x"] {
            assert!(check_version(CONNECTOR, odd).is_err(), "{odd}");
        }
        assert_eq!(
            check_version(CONNECTOR, "2.0.0").unwrap_err().to_string(),
            "built for souk:connector 2.0, this host serves 1.0: rebuild with sdk 1.0 or upgrade the host"
        );
    }

    /// What no grant covers is named.
    #[test]
    fn imports_are_covered_or_named() {
        for fine in [
            "wasi:cli/environment@0.2.6",
            "wasi:io/poll@0.2.0",
            "souk:connector/types@1.0.0",
        ] {
            assert!(check_import(fine).is_ok(), "{fine}");
        }
        assert!(check_import("wasi:sockets/tcp@0.2.0").is_ok());
        let told = refused(&[
            "wasi:sockets/tcp@0.2.0".into(),
            "wasi:io/poll@0.2.0".into(),
            "wasi:nn/tensor@0.2.0".into(),
            "wasi:sockets/udp@0.2.0".into(),
            "souk:connector/types@1.0.0".into(),
        ]);
        let [sockets, models] = &told[..] else {
            panic!("{told:?}");
        };
        assert!(
            sockets.contains("wasi:sockets/tcp@0.2.0, wasi:sockets/udp@0.2.0: that wants")
                && sockets.contains("network"),
            "{sockets}"
        );
        assert!(models.contains("machine-learning"), "{models}");
        assert!(check_import("my:own/thing@1.0.0").is_err());
        assert!(check_import("wasicker:thing/x").is_err());
    }

    /// What the pool has no room for is told with its numbers, before anything is compiled.
    #[test]
    fn what_is_too_large_is_counted() {
        assert!(Counts::default().check().is_ok());
        let counts = Counts {
            instances: INSTANCES_MAX + 1,
            ..Counts::default()
        };
        assert_eq!(
            counts.check().unwrap_err().to_string(),
            format!(
                "this component has {} core module instances, and may have {INSTANCES_MAX}",
                INSTANCES_MAX + 1
            )
        );
        let counts = Counts {
            memories: MEMORIES_MAX + 1,
            ..Counts::default()
        };
        assert!(counts.check().unwrap_err().to_string().contains("memories"));
    }

    #[test]
    fn other_files_are_told_apart() {
        let inspect = |wasm: &[u8]| Outside::of(wasm).and_then(|outside| outside.inspect());
        for (wasm, told) in [
            (&b"hello"[..], "not a WebAssembly component"),
            (b"\0asm\x01\0\0\0", "core WebAssembly module"),
            (b"\0asm\x0d\0\x01\0", "another world"),
            (b"\0asm\x0d\0\x01\0garbage", "damaged"),
        ] {
            let error = inspect(wasm).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
