//! The projects that `souk connector new` begins. They are whole ones, which build where they are; a name of one's own replaces
//! `my-connector` and its other spellings. The SDK is put beside them as it was when this program was built: no registry is needed, and host
//! and connector agree on the contract.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// How a name is written in one of its spellings.
type Spelling = fn(&str) -> String;

/// What a template is called, in each spelling.
const SPELLINGS: [(&str, Spelling); 4] = [
    ("my-connector", |name| name.to_owned()),
    ("my_connector", |name| name.replace('-', "_")),
    ("MY_CONNECTOR", |name| name.replace('-', "_").to_uppercase()),
    ("MyConnector", pascal),
];

/// The templates there are: `rust-http`, ….
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = TEMPLATES
        .iter()
        .filter_map(|(path, _)| path.split('/').next())
        .filter(|name| !name.ends_with("-common"))
        .collect();
    names.dedup();
    names
}

/// The files of a project called `name`: their paths in it, and their contents. `None`: there is no such template.
pub fn project(language: &str, kind: &str, name: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let template = format!("{language}-{kind}/");
    let common = format!("{language}-common/");
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for prefix in [&template, &common] {
        for (path, bytes) in TEMPLATES {
            let Some(path) = path.strip_prefix(prefix.as_str()) else {
                continue;
            };
            // What the template says itself goes before what it shares.
            if files.iter().any(|(known, _)| known == path) {
                continue;
            }
            let path = match path {
                "gitignore" => ".gitignore".to_owned(),
                path => named(path, name),
            };
            let bytes = match std::str::from_utf8(bytes) {
                Ok(text) => named(text, name).into_bytes(),
                Err(_) => bytes.to_vec(),
            };
            files.push((path, bytes));
        }
        if prefix == &template && files.is_empty() {
            return None;
        }
    }
    let vendored: &[(&str, &[u8])] = match language {
        "rust" => SDK,
        // Of other languages the contract is all there is.
        _ => &[],
    };
    for (path, bytes) in vendored {
        files.push((format!("vendor/souk-sdk/{path}"), bytes.to_vec()));
    }
    if language != "rust" {
        for (path, bytes) in SDK.iter().filter(|(path, _)| path.starts_with("wit/v1/")) {
            files.push(((*path).to_owned(), bytes.to_vec()));
        }
    }
    Some(files)
}

/// Whether a connector can be called so: `[a-z][a-z0-9-]*`, and no dash at the end, which no crate has.
pub fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && !name.contains("--")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn named(text: &str, name: &str) -> String {
    SPELLINGS.iter().fold(text.to_owned(), |text, (from, to)| {
        text.replace(from, &to(name))
    })
}

fn pascal(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project has its own name everywhere, and the SDK with nothing inherited.
    #[test]
    fn a_project_is_whole() {
        for template in names() {
            let (language, kind) = template.split_once('-').expect("two words");
            let files = project(language, kind, "league-table").expect(template);
            let text = |path: &str| {
                let found = files.iter().find(|(known, _)| known == path);
                let (_, bytes) = found.unwrap_or_else(|| panic!("{template}: {path}"));
                String::from_utf8(bytes.clone()).expect("text")
            };
            for (path, bytes) in &files {
                let own = String::from_utf8_lossy(bytes);
                let is_own = !path.starts_with("vendor/") && !path.starts_with("wit/");
                for (spelling, _) in SPELLINGS.iter().filter(|_| is_own) {
                    assert!(!own.contains(spelling), "{template}: {path} has {spelling}");
                }
            }
            assert!(text("README.md").contains("# league-table"));
            assert!(text("souk-test.toml").contains("[[query]]"));
            if language == "js" {
                assert!(text("app.js").contains("name: 'league-table'"));
                assert!(text("build.js").contains("target/league-table.wasm"));
                assert!(text("wit/v1/connector.wit").contains("souk:connector@1.0.0"));
                text("souk.js");
                text("tests/scripted.js");
            }
            if template == "js-file" {
                text("wasi.js");
                text("wit/files.wit");
                text("data/people.csv");
            }
            if language == "python" {
                assert!(text("src/app.py").contains("class LeagueTable(souk.Connector)"));
                assert!(text("build").contains("target/league-table.wasm"));
                assert!(text("requirements.txt").contains("--hash=sha256:"));
                text("src/souk.py");
                text("tests/scripted.py");
                text("wit/v1/connector.wit");
            }
            if language == "rust" {
                assert!(text("src/lib.rs").contains("export!(LeagueTable)"));
                assert!(text("Cargo.toml").contains("cdylib"));
                let manifest = text("vendor/souk-sdk/Cargo.toml");
                assert!(!manifest.contains("workspace"), "{manifest}");
                text("vendor/souk-sdk/wit/publisher-v1/publisher.wit");
                text("vendor/souk-sdk/src/example.rs");
            }
        }
    }

    /// Each kind can be begun in each language.
    #[test]
    fn no_template_is_missing() {
        for language in ["rust", "python", "js"] {
            for kind in ["tcp", "http", "file"] {
                let template = format!("{language}-{kind}");
                assert!(names().contains(&template.as_str()), "{template}");
                assert!(project(language, kind, "x").is_some(), "{template}");
            }
        }
        assert!(project("js", "udp", "x").is_none());
        assert!(project("cobol", "tcp", "x").is_none());
    }

    #[test]
    fn names_are_those_of_connectors() {
        for good in ["a", "redis", "league-table", "a1-b2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "1a", "-a", "a-", "A", "a_b", "a--b", "../x", "é"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
