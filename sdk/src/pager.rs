//! Lists that an API gives page by page.

use crate::http::{Http, Request};
use crate::{Error, HttpResponse};

/// An API that leads on and on is not believed for longer.
const PAGES_MAX: u32 = 1_000;

/// Sends a request, and what follows from each response. There is no waiting in here: a 429 in the middle ends the request with
/// `rate-limited` and the source's `Retry-After`, and it is the caller who comes back; ask for pages as large as the API gives.
///
/// ```
/// # use souk_sdk::{Error, Http, Pager, Rows, http::{Request, led_to}};
/// # async fn query(http: Http, rows: &mut Rows) -> Result<(), Error> {
/// let mut pages = Pager::new(http, Request::get("/teams"), |response| {
///     let next = response.next_link().map(led_to).transpose()?;
///     Ok(next.map(Request::get))
/// });
/// while let Some(page) = pages.next().await? {
///     for name in page.json::<Vec<&str>>()? {
///         rows.push([name.into()])?;
///     }
///     if rows.rows_left() == 0 {
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Pager<F> {
    http: Http,
    next: Option<Request>,
    follow: F,
    pages: u32,
}

impl<F: FnMut(&HttpResponse) -> Result<Option<Request>, Error>> Pager<F> {
    /// `follow` makes the next request of a response; `None` after the last.
    pub fn new(http: Http, first: Request, follow: F) -> Pager<F> {
        Pager {
            http,
            next: Some(first),
            follow,
            pages: 0,
        }
    }

    /// The next response, its status being 2xx ([`HttpResponse::classified`]); `None` after the last.
    pub async fn next(&mut self) -> Result<Option<HttpResponse>, Error> {
        let Some(request) = self.next.take() else {
            return Ok(None);
        };
        if self.pages == PAGES_MAX {
            return Err(Error::limit_exceeded(
                "too_many_pages",
                format!("the source's list has more than {PAGES_MAX} pages"),
            ));
        }
        self.pages += 1;
        let response = self.http.send(request).await?.classified()?;
        self.next = (self.follow)(&response)?;
        Ok(Some(response))
    }
}
