//! Where things are: for tools as JSON, for a browser as a page.

use crate::accepted::is_preferred;
use crate::describe::{Describe, Description};
use crate::{Access, Data, Operation};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("root", "/")
    .about("System", "Where things are")
    .notes("A client that would rather have `text/html`, such as a browser, gets a page.")
    .access(Access::Public);

const HTML: &str = "text/html";

/// Nothing runs in the page, and it shows nothing of others.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Paths on this host.
#[derive(Serialize, ToSchema)]
pub struct Root {
    pub name: &'static str,
    pub version: &'static str,
    /// The reference, in a browser.
    pub docs: &'static str,
    /// The same for tools.
    pub openapi: &'static str,
    /// What is on sale, for whoever has a key.
    pub products: &'static str,
}

/// The same for people and tools.
pub struct Front {
    root: Root,
    is_page: bool,
}

impl Describe for Front {
    fn describe(into: &mut Description) {
        Data::<Root>::describe(into);
        into.answer(200, Some((HTML, |_| json!({"type": "string"}))));
    }
}

impl IntoResponse for Front {
    fn into_response(self) -> Response {
        let mut response = match self.is_page {
            true => page(&self.root),
            false => Data(self.root).into_response(),
        };
        let vary = HeaderValue::from_static("accept");
        response.headers_mut().insert(header::VARY, vary);
        response
    }
}

pub async fn root(headers: HeaderMap) -> Front {
    Front {
        root: Root {
            name: "souk",
            version: env!("CARGO_PKG_VERSION"),
            docs: "/docs",
            openapi: "/openapi.json",
            products: "/marketplace/products",
        },
        is_page: is_preferred(&headers, HTML),
    }
}

/// Its links are relative: the host may stand behind a path.
fn page(root: &Root) -> Response {
    let Root {
        name,
        version,
        docs,
        openapi,
        products,
    } = root;
    let here = |path: &str| path.trim_start_matches('/').to_owned();
    let (docs, openapi) = (here(docs), here(openapi));
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{name}</title>\n<style>body{{font:1.1rem system-ui;max-width:32rem;margin:4rem auto;padding:0 1rem}}</style>\n\
         <h1>{name} {version}</h1>\n<p>An analytics marketplace, for programs: there is no website here.</p>\n<ul>\n\
         <li><a href=\"{docs}\">The reference</a>, from where requests can be sent</li>\n\
         <li><a href=\"{openapi}\">{openapi}</a>, the same for tools, and <a href=\"openapi-3.0.json\">openapi-3.0.json</a></li>\n\
         <li><code>GET {products}</code>, what is on sale, with an API key in <code>x-api-key</code></li>\n</ul>\n</html>\n"
    );
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, html).into_response()
}
