//! What souk-build reads of a package's `Cargo.toml`: which components it makes and what they need.

use crate::BuildError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A package that makes at least one component.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub dir: PathBuf,
    pub package: String,
    pub components: Vec<Component>,
    /// `[package.metadata.souk] c = true`: there is C inside.
    pub c: bool,
    /// `[package.metadata.souk.env]`: for the build scripts of its dependencies. `{dir}` in it is the package's own directory.
    pub env: BTreeMap<String, String>,
    /// `[package.metadata.souk] features = […]`: switched on for the component only.
    pub features: Vec<String>,
    /// `[package.metadata.souk] opt-level = "s"`: where a component is shipped smaller than fast.
    pub opt_level: Option<String>,
    /// `[package.metadata.souk] bundle = "asked"`: bundled where that is asked for, because its own build keeps others waiting.
    pub bundle: Bundle,
    /// It has a `[workspace]` of its own, and so a `Cargo.lock`.
    pub is_apart: bool,
}

/// Which builds of the host bundle it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bundle {
    #[default]
    Always,
    Asked,
}

/// One `.wasm` file that cargo makes of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    pub name: String,
    /// Relative to cargo's release directory, without the extension.
    stem: PathBuf,
    pub example: bool,
}

impl Component {
    pub fn wasm(&self, release: &Path) -> PathBuf {
        release.join(self.stem.with_extension("wasm"))
    }

    /// Cargo's list of the files it was built from.
    pub fn dep_info(&self, release: &Path) -> PathBuf {
        release.join(self.stem.with_extension("d"))
    }
}

#[derive(Deserialize)]
struct File {
    package: Package,
    workspace: Option<toml::Table>,
    lib: Option<Target>,
    #[serde(default)]
    example: Vec<Target>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    souk: Souk,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Souk {
    #[serde(default)]
    c: bool,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    features: Vec<String>,
    #[serde(rename = "opt-level")]
    opt_level: Option<String>,
    #[serde(default)]
    bundle: Bundle,
}

#[derive(Deserialize)]
struct Target {
    name: Option<String>,
    #[serde(rename = "crate-type", default)]
    crate_type: Vec<String>,
}

impl Target {
    fn is_component(&self) -> bool {
        self.crate_type.iter().any(|kind| kind == "cdylib")
    }
}

impl Manifest {
    pub fn read(dir: &Path) -> Result<Manifest, BuildError> {
        let path = dir.join("Cargo.toml");
        let text = std::fs::read_to_string(&path).map_err(BuildError::io("cannot read", &path))?;
        Manifest::parse(dir, &text).map_err(|reason| BuildError::Manifest { path, reason })
    }

    fn parse(dir: &Path, text: &str) -> Result<Manifest, String> {
        let file: File = toml::from_str(text).map_err(|error| error.message().to_string())?;
        let mut components = Vec::new();
        if let Some(lib) = file.lib.filter(Target::is_component) {
            let stem = lib
                .name
                .unwrap_or_else(|| file.package.name.clone())
                .replace('-', "_");
            let folder = dir.file_name().and_then(|name| name.to_str());
            components.push(Component {
                name: folder.unwrap_or(&file.package.name).to_string(),
                stem: stem.into(),
                example: false,
            });
        }
        for example in file.example.into_iter().filter(Target::is_component) {
            let name = example.name.ok_or("an [[example]] has no name")?;
            let stem = Path::new("examples").join(name.replace('-', "_"));
            components.push(Component {
                name,
                stem,
                example: true,
            });
        }
        let souk = file.package.metadata.souk;
        // A build script runs in the directory of its own package.
        let here = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
        let here = here.display().to_string();
        let env = souk.env.into_iter();
        Ok(Manifest {
            dir: dir.to_path_buf(),
            package: file.package.name,
            components,
            c: souk.c,
            env: env
                .map(|(name, value)| (name, value.replace("{dir}", &here)))
                .collect(),
            features: souk.features,
            opt_level: souk.opt_level,
            bundle: souk.bundle,
            is_apart: file.workspace.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cdylib_library_is_a_component_named_after_its_folder() {
        let manifest = Manifest::parse(
            Path::new("/plugins/sqlite"),
            "[package]\nname = \"souk-connector-sqlite\"\nversion.workspace = true\n\
             [package.metadata.souk]\nc = true\nenv = { FLAGS = \"-O\", CPATH = \"{dir}/c\" }\n[lib]\ncrate-type = [\"cdylib\", \"lib\"]",
        )
        .unwrap();
        assert_eq!(manifest.components[0].name, "sqlite");
        assert_eq!(
            manifest.components[0].wasm(Path::new("r")),
            Path::new("r/souk_connector_sqlite.wasm")
        );
        assert!(manifest.c);
        assert_eq!(manifest.env["FLAGS"], "-O");
        let here = std::path::absolute("/plugins/sqlite").unwrap();
        assert_eq!(manifest.env["CPATH"], format!("{}/c", here.display()));
    }

    #[test]
    fn what_takes_long_to_build_says_so() {
        let plain = Manifest::parse(Path::new("x"), "[package]\nname = \"x\"").unwrap();
        assert_eq!((plain.bundle, plain.is_apart), (Bundle::Always, false));
        let slow = "[package]\nname = \"x\"\n[package.metadata.souk]\nbundle = \"asked\"\nopt-level = \"s\"\n[workspace]";
        let slow = Manifest::parse(Path::new("x"), slow).unwrap();
        assert_eq!((slow.bundle, slow.is_apart), (Bundle::Asked, true));
        assert_eq!(slow.opt_level.as_deref(), Some("s"));
    }

    #[test]
    fn a_plain_library_makes_no_component() {
        let manifest = Manifest::parse(Path::new("x"), "[package]\nname = \"x\"").unwrap();
        assert_eq!(manifest.components, []);
    }

    #[test]
    fn every_cdylib_example_is_a_component() {
        let manifest = Manifest::parse(
            Path::new("guests"),
            "[package]\nname = \"g\"\n[[example]]\nname = \"memory-hog\"\npath = \"a.rs\"\ncrate-type = [\"cdylib\"]\n\
             [[example]]\nname = \"plain\"",
        )
        .unwrap();
        assert_eq!(manifest.components.len(), 1);
        assert_eq!(
            manifest.components[0].dep_info(Path::new("r")),
            Path::new("r/examples/memory_hog.d")
        );
    }

    #[test]
    fn a_misspelt_setting_is_refused() {
        let error = Manifest::parse(
            Path::new("x"),
            "[package]\nname = \"x\"\n[package.metadata.souk]\ncc = true",
        );
        assert!(error.unwrap_err().contains("unknown field `cc`"));
    }
}
