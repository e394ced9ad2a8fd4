//! The reference in a browser, with everything that it needs: Swagger UI on `/openapi.json`, which sends requests too.

use crate::describe::{Describe, Description};
use crate::refusals::ROUTE_NOT_FOUND;
use crate::{Access, Operation, Path, Problem};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde_json::json;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use utoipa_swagger_ui::Config;

pub const OPERATION: Operation = Operation::get("docs", "/docs")
    .about(
        "System",
        "This document in a browser, from where requests can be sent",
    )
    .access(Access::Public)
    .refuses(&[ROUTE_NOT_FOUND]);

pub const FILE_OPERATION: Operation = Operation::get("docs_file", "/docs/{file}")
    .about("System", "What the browser needs for it")
    .access(Access::Public)
    .refuses(&[ROUTE_NOT_FOUND]);

/// What runs in the page comes from this host, and speaks to it alone. Swagger UI sets styles and shows its images inline.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'",
);

static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    let config = Config::new(["/openapi.json"])
        .try_it_out_enabled(true)
        .display_request_duration(true)
        .filter(true)
        .doc_expansion("none");
    Arc::new(config)
});

/// A file of the page.
pub struct File {
    bytes: Cow<'static, [u8]>,
    content_type: HeaderValue,
}

impl Describe for File {
    fn describe(into: &mut Description) {
        for kind in ["text/html", "text/css", "text/javascript", "image/png"] {
            into.answer(200, Some((kind, |_| json!({"type": "string"}))));
        }
    }
}

impl IntoResponse for File {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.bytes.into_owned()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, self.content_type);
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        response
    }
}

pub async fn docs() -> Result<File, Problem> {
    let mut page = file("index.html")?;
    let html = String::from_utf8_lossy(&page.bytes);
    // Its links are relative, and it is not in the folder of the files.
    let html = html.replacen("<head>", "<head>\n    <base href=\"docs/\" />", 1);
    page.bytes = Cow::Owned(html.into_bytes());
    Ok(page)
}

pub async fn docs_file(Path(name): Path<String>) -> Result<File, Problem> {
    file(&name)
}

fn file(name: &str) -> Result<File, Problem> {
    let found = utoipa_swagger_ui::serve(name, CONFIG.clone()).map_err(Problem::internal)?;
    let found =
        found.ok_or_else(|| Problem::of(ROUTE_NOT_FOUND, "there is no such file; see /docs"))?;
    Ok(File {
        bytes: Cow::Owned(found.bytes.into_owned()),
        content_type: HeaderValue::from_str(&found.content_type).map_err(Problem::internal)?,
    })
}
