//! Builds the guests, and makes an enum of their behaviours: whoever says what is right in answer to each (`src/scenarios.rs`) matches on
//! it, so that a guest without a test does not compile.

use std::fmt::Write;
use std::path::Path;

fn main() {
    souk_build::generate::guests(&[concat!(env!("CARGO_MANIFEST_DIR"), "/guests")]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/src/behaviours");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the guests' behaviours")
        .flatten()
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "mod")
        .collect();
    names.sort();
    let mut source = String::from(
        "/// What a guest does: one for each module of `guests/src/behaviours`.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum Guest {\n",
    );
    let (mut all, mut arms) = (String::new(), String::new());
    for name in &names {
        let variant = camel_case(name);
        let _ = writeln!(source, "    {variant},");
        let _ = write!(all, "Guest::{variant}, ");
        let _ = writeln!(arms, "            Guest::{variant} => {name:?},");
    }
    let _ = writeln!(
        source,
        "}}\n\nimpl Guest {{\n    pub const ALL: &[Guest] = &[{all}];\n\n    pub fn name(self) -> &'static str {{\n        match self {{\n{arms}        }}\n    }}\n}}"
    );
    let out = std::env::var_os("OUT_DIR").expect("OUT_DIR");
    std::fs::write(Path::new(&out).join("behaviours.rs"), source).expect("the behaviours");
}

fn camel_case(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters)
        })
        .collect()
}
