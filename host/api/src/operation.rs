//! An operation in one place: method, path, who may call it, how often, what it takes and what it answers.
//!
//! Routing ([`crate::routes`]), the gate ([`crate::gate`]) and the OpenAPI document ([`crate::openapi`]) are all made from this value,
//! so that none of them can tell another story.

use crate::openapi::SchemaFn;
use souk_domain::roles::{Permission, Role};

/// Largest JSON body. Uploads say `.streams()` and bound themselves.
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
pub enum ParamKind {
    Integer {
        min: i64,
        max: i64,
    },
    Boolean,
    Text {
        chars_max: usize,
    },
    /// A date, meaning its midnight UTC, or an instant: from then on.
    From,
    /// A date, which is included, or an instant, which is not.
    Until,
    /// A UTC date, read as its midnight.
    Date,
    OneOf(&'static [&'static str]),
}

/// A query parameter. What is not declared is refused, what breaks its kind is refused: a handler sees valid values only.
#[derive(Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub kind: ParamKind,
    pub about: &'static str,
}

/// `page` and `per_page` of management lists.
pub const PAGE: Param = Param {
    name: "page",
    kind: ParamKind::Integer {
        min: 1,
        max: 1_000_000,
    },
    about: "Page number, from 1. Default 1.",
};
pub const PER_PAGE: Param = Param {
    name: "per_page",
    kind: ParamKind::Integer { min: 1, max: 100 },
    about: "Items per page. Default 50.",
};
pub const SORT_ORDER: Param = Param {
    name: "sort_order",
    kind: ParamKind::OneOf(&["asc", "desc"]),
    about: "Direction of `sort_by`.",
};

#[derive(Clone, Copy)]
pub enum Shape {
    /// `{"data": <schema>}`
    One(SchemaFn),
    /// `{"data": [<schema>], "meta": {total, page, per_page}}`
    List(SchemaFn),
    /// `{"data": [<schema>], "meta": {total, limit, offset}}`
    Slice(SchemaFn),
    /// The schema as it is, without the envelope.
    Bare(SchemaFn),
    Empty,
    /// Not JSON.
    Raw(&'static str),
}

#[derive(Clone, Copy)]
pub struct Operation {
    pub id: &'static str,
    pub verb: Verb,
    pub path: &'static str,
    pub aliases: &'static [&'static str],
    pub tag: &'static str,
    pub summary: &'static str,
    pub notes: &'static str,
    pub access: Access,
    pub company: CompanyRule,
    /// Calls an hour per key, beside the key's own limit.
    pub hourly: Option<u32>,
    /// Calls an hour per key for each value of the path's only parameter, beside the key's own limit.
    pub hourly_each: Option<u32>,
    /// Charges credits: idempotency is part of the charge and is handled by the handler.
    pub billed: bool,
    /// Moves money by itself: refused without an `Idempotency-Key`, since a client that repeats it blindly would move it twice.
    pub key_required: bool,
    /// Runs a connector: counts against the calls in flight of a key.
    pub runs_connector: bool,
    /// `None`: the handler reads the body as a stream and bounds it.
    pub body_bytes_max: Option<u64>,
    /// The most memory that a streamed body may come to hold; 0 when the body is not streamed.
    pub upload_bytes_max: u64,
    pub query: &'static [Param],
    /// Further query parameters are handed to the handler (filters, parameters of an asset).
    pub open_query: bool,
    pub body: Option<SchemaFn>,
    pub body_optional: bool,
    pub body_type: &'static str,
    pub success: u16,
    /// Another status of an answer with the same shape.
    pub success_also: Option<u16>,
    pub shape: Shape,
    /// Another content type in which the answer can be had.
    pub also: Option<&'static str>,
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
            aliases: &[],
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
            runs_connector: false,
            body_bytes_max: Some(BODY_BYTES_MAX),
            upload_bytes_max: 0,
            query: &[],
            open_query: false,
            body: None,
            body_optional: false,
            body_type: "application/json",
            success: match verb {
                Verb::Delete => 204,
                _ => 200,
            },
            success_also: None,
            shape: Shape::Empty,
            also: None,
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
        matches!(
            self.access,
            Access::Key {
                permission: Permission::Read,
                ..
            }
        )
    }

    /// Further paths of the same operation. They must have the same parameters.
    pub const fn aliases(mut self, paths: &'static [&'static str]) -> Operation {
        self.aliases = paths;
        self
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

    pub const fn runs_connector(mut self) -> Operation {
        self.runs_connector = true;
        self
    }

    /// An upload: the handler reads the body as a stream and holds at most `bytes_max` of it in memory, for which it has a place
    /// before a byte is read ([`crate::uploads`]).
    pub const fn streams(mut self, content_type: &'static str, bytes_max: u64) -> Operation {
        self.body_bytes_max = None;
        self.upload_bytes_max = bytes_max;
        self.body_type = content_type;
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

    pub const fn query(mut self, params: &'static [Param]) -> Operation {
        self.query = params;
        self
    }

    pub const fn open_query(mut self) -> Operation {
        self.open_query = true;
        self
    }

    pub const fn body(mut self, schema: SchemaFn) -> Operation {
        self.body = Some(schema);
        self
    }

    pub const fn optional_body(mut self, schema: SchemaFn) -> Operation {
        self.body = Some(schema);
        self.body_optional = true;
        self
    }

    pub const fn returns(mut self, success: u16, shape: Shape) -> Operation {
        self.success = success;
        self.shape = shape;
        self
    }

    /// An answer of the same shape may have this status as well: 200 for what is there already, 201 for what was made just now.
    pub const fn or(mut self, success: u16) -> Operation {
        self.success_also = Some(success);
        self
    }

    pub const fn also(mut self, content_type: &'static str) -> Operation {
        self.also = Some(content_type);
        self
    }
}
