//! What a connector says of itself, in few lines.

use crate::{Descriptor, Engine, Need};

impl Descriptor {
    /// A connector without engines, settings and abilities. Its name is `[a-z][a-z0-9-]*`, unique among connectors; its version
    /// is a semantic one, best `env!("CARGO_PKG_VERSION")`.
    pub fn new(name: impl Into<String>, version: impl Into<String>, need: Need) -> Descriptor {
        Descriptor {
            name: name.into(),
            version: version.into(),
            engines: Vec::new(),
            need,
            settings_schema: r#"{"type":"object"}"#.into(),
            abilities: Vec::new(),
        }
    }

    /// Serves this engine too. `dialect` is the SQL that it speaks (`postgres`, `sqlite`, `generic`), `opaque` for a text of the
    /// engine's own (a path, a command, GraphQL) that the host hands on as it is, `none` for functions only;
    /// `credential_types` which credentials a connection may have (`NONE`, `API_KEY`, `PASSWORD`).
    pub fn engine(
        mut self,
        slug: impl Into<String>,
        title: impl Into<String>,
        dialect: impl Into<String>,
        credential_types: &[&str],
    ) -> Descriptor {
        self.engines.push(Engine {
            slug: slug.into(),
            title: title.into(),
            dialect: dialect.into(),
            credential_types: credential_types.iter().copied().map(String::from).collect(),
        });
        self
    }

    /// A JSON Schema of the connection's settings; a secret has `"writeOnly": true`.
    pub fn settings_schema(mut self, schema: impl Into<String>) -> Descriptor {
        self.settings_schema = schema.into();
        self
    }

    /// What the connector can do beyond queries: `schema`, `pipelining`, `cancel`, `functions`; of a [`Machine`](crate::Machine) also
    /// `idle`, over TCP `groups` and `alone` (`docs/connectors.md`). A [`Connector`](crate::Connector) over HTTP has `cancel` for the asking: without it whoever leaves
    /// ends the session. What a host cannot tell of types by themselves is said here, too: `singles:real`, `wide:hugeint`, `unsorted:geometry`,
    /// `uncompared:interval`, `no-such-operator:TYPE_MISMATCH`.
    pub fn abilities(mut self, abilities: &[&str]) -> Descriptor {
        self.abilities = abilities.iter().copied().map(String::from).collect();
        self
    }
}
