//! What a handler's signature cannot say of its operation: method, path, who may call it, how often, what it means.
//!
//! Routing ([`crate::routes`]), the gate ([`crate::gate`]) and the OpenAPI document ([`crate::openapi`]) are all made from this value
//! and from the handler's own types ([`crate::describe`]), so that none of them can tell another story.

use crate::refusals::Refusal;
use souk_domain::roles::{Permission, Role};

/// Largest JSON body. Uploads bound themselves.
pub const BODY_BYTES_MAX: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
        }
    }

    pub const fn method(self) -> http::Method {
        match self {
            Verb::Get => http::Method::GET,
            Verb::Post => http::Method::POST,
            Verb::Put => http::Method::PUT,
            Verb::Patch => http::Method::PATCH,
            Verb::Delete => http::Method::DELETE,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No key is asked for.
    Public,
    /// An analytics key with at least this role and this permission.
    Key { role: Role, permission: Permission },
    /// The customer data route: an endpoint key, or an analytics key that may read. The handler checks which endpoint.
    Data,
}

/// What the path's `company_id` means to the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompanyRule {
    /// Must be the key's company (or the key is platform staff's). Only for paths that begin `/companies/{company_id}`.
    Own,
    /// Not compared: there is none in the path, or the handler decides (executing a foreign asset).
    Unchecked,
}

#[derive(Clone, Copy)]
pub struct Operation {
    pub id: &'static str,
    pub verb: Verb,
    pub path: &'static str,
    /// Another path of the same operation, and what it is called there.
    pub alias: Option<(&'static str, &'static str)>,
    pub tag: &'static str,
    pub summary: &'static str,
    pub notes: &'static str,
    pub access: Access,
    pub company: CompanyRule,
    /// Calls an hour per key, beside the key's own limit; of an operation without a key per address.
    pub hourly: Option<u32>,
    /// Calls an hour per key for each value of the path's only parameter, beside the key's own limit.
    pub hourly_each: Option<u32>,
    /// Charges credits: idempotency is part of the charge and is handled by the handler.
    pub billed: bool,
    /// Moves money by itself: refused without an `Idempotency-Key`, since a client that repeats it blindly would move it twice.
    pub key_required: bool,
    /// Changes something although the permission `read` is enough: what a caller may do to itself.
    pub is_change: bool,
    /// Whoever calls it signs what he sends: a call that is accepted does not count against its address.
    pub signed: bool,
    /// Runs a connector: counts against the calls in flight of a key.
    pub runs_connector: bool,
    /// What it refuses with that neither its handler's types nor its properties say.
    pub refusals: &'static [Refusal],
}

impl Operation {
    const fn new(verb: Verb, id: &'static str, path: &'static str) -> Operation {
        let bytes = path.as_bytes();
        let prefix = b"/companies/{company_id}";
        let mut of_company = bytes.len() >= prefix.len();
        let mut place = 0;
        while of_company && place < prefix.len() {
            of_company = bytes[place] == prefix[place];
            place += 1;
        }
        Operation {
            id,
            verb,
            path,
            alias: None,
            tag: "",
            summary: "",
            notes: "",
            access: Access::Key {
                role: Role::Analyst,
                permission: match verb {
                    Verb::Get => Permission::Read,
                    _ => Permission::Write,
                },
            },
            company: if of_company {
                CompanyRule::Own
            } else {
                CompanyRule::Unchecked
            },
            hourly: None,
            hourly_each: None,
            billed: false,
            key_required: false,
            is_change: false,
            signed: false,
            runs_connector: false,
            refusals: &[],
        }
    }

    /// Needs role 1 and `read` unless [`Operation::needs`] says otherwise.
    pub const fn get(id: &'static str, path: &'static str) -> Operation {
        Operation::new(Verb::Get, id, path)
    }

    /// Needs role 1 and `write` unless [`Operation::needs`] says otherwise, like the other verbs that write.
    pub const fn post(id: &'static str, path: &'static str) -> Operation {
        Operation::new(Verb::Post, id, path)
    }

    pub const fn put(id: &'static str, path: &'static str) -> Operation {
        Operation::new(Verb::Put, id, path)
    }

    pub const fn patch(id: &'static str, path: &'static str) -> Operation {
        Operation::new(Verb::Patch, id, path)
    }

    pub const fn delete(id: &'static str, path: &'static str) -> Operation {
        Operation::new(Verb::Delete, id, path)
    }

    /// It changes nothing, so doing it again does no harm: a free test of an asset, say.
    pub const fn only_reads(&self) -> bool {
        let may_only_read = matches!(
            self.access,
            Access::Key {
                permission: Permission::Read,
                ..
            }
        );
        may_only_read && !self.is_change
    }

    /// It only reads the host's own records: of a company few at a time do. Some need a body to say what they read.
    pub const fn reads_records(&self) -> bool {
        let only_reads = matches!(self.verb, Verb::Get) || self.only_reads();
        only_reads && !self.runs_connector
    }

    /// Left to a company that has no requests left this month: it has to be able to take a key from whoever has used them up.
    pub fn manages_keys(&self) -> bool {
        self.tag == "API keys"
    }

    /// A signed-in user may do it with the cookie of a session.
    pub const fn takes_sessions(&self) -> bool {
        matches!(self.access, Access::Key { .. })
    }

    /// A browser that is made to do it by another site harms its user: what changes or costs something, GET or not.
    pub const fn is_guarded(&self) -> bool {
        !matches!(self.verb, Verb::Get) || self.billed || self.runs_connector
    }

    /// It changes something that the audit log tells of.
    pub const fn is_audited(&self) -> bool {
        !matches!(self.verb, Verb::Get) && !self.only_reads()
    }

    /// The router keeps its answers for requests with an `Idempotency-Key`.
    pub const fn keeps_answers(&self) -> bool {
        matches!(self.verb, Verb::Post) && !self.billed && !self.only_reads()
    }

    /// What supervisors and balancers ask, often and from one address: always answered, and cheap.
    pub fn is_probe(&self) -> bool {
        matches!(self.id, "healthz" | "readyz")
    }

    /// What there is to read about this API itself: large, and the same for everybody.
    pub fn is_reference(&self) -> bool {
        matches!(self.id, "openapi" | "openapi_3_0" | "docs" | "docs_file")
    }

    /// Another path of the same operation, which must have the same parameters, and its name there: generated clients have a function for each.
    pub const fn alias(mut self, path: &'static str, id: &'static str) -> Operation {
        self.alias = Some((path, id));
        self
    }

    /// Its paths with their names.
    pub fn paths(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        std::iter::once((self.path, self.id)).chain(self.alias)
    }

    pub const fn needs(mut self, role: Role, permission: Permission) -> Operation {
        self.access = Access::Key { role, permission };
        self
    }

    pub const fn access(mut self, access: Access) -> Operation {
        self.access = access;
        self
    }

    /// The path's company is not compared with the key's: the handler decides.
    pub const fn any_company(mut self) -> Operation {
        self.company = CompanyRule::Unchecked;
        self
    }

    pub const fn hourly(mut self, calls: u32) -> Operation {
        self.hourly = Some(calls);
        self
    }

    pub const fn hourly_each(mut self, calls: u32) -> Operation {
        self.hourly_each = Some(calls);
        self
    }

    pub const fn billed(mut self) -> Operation {
        self.billed = true;
        self
    }

    /// Refused without an `Idempotency-Key`. For POST only.
    pub const fn key_required(mut self) -> Operation {
        self.key_required = true;
        self
    }

    /// It changes something although the permission `read` is enough.
    pub const fn changes(mut self) -> Operation {
        self.is_change = true;
        self
    }

    /// What is sent proves who sends it. For operations without a key.
    pub const fn signed(mut self) -> Operation {
        self.signed = true;
        self
    }

    pub const fn runs_connector(mut self) -> Operation {
        self.runs_connector = true;
        self
    }

    pub const fn about(mut self, tag: &'static str, summary: &'static str) -> Operation {
        self.tag = tag;
        self.summary = summary;
        self
    }

    /// Choices that a reader of the specification would ask about.
    pub const fn notes(mut self, notes: &'static str) -> Operation {
        self.notes = notes;
        self
    }

    pub const fn refuses(mut self, refusals: &'static [Refusal]) -> Operation {
        self.refusals = refusals;
        self
    }
}
