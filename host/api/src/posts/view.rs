use super::not_found;
use crate::describe::{Argument, Describe, Description, Incoming};
use crate::refusals::POST_NOT_FOUND;
use crate::settings::peer;
use crate::{Access, ApiState, Data, NobodysRead, Operation, Path, Problem};
use axum::extract::State;
use serde::Serialize;
use sha2::{Digest, Sha256};
use souk_domain::ids::{CompanyId, PostId};
use souk_store::posts;
use std::net::IpAddr;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("view_post", "/posts/{post_id}/views")
    .about("Posts", "Count a reader of a published post")
    .notes(NOTES)
    .access(Access::Public)
    .refuses(&[POST_NOT_FOUND]);

pub const COMPANY_OPERATION: Operation = Operation::post(
    "view_company_post",
    "/companies/{company_id}/posts/{post_id}/views",
)
.about("Posts", "Count a reader of a company's published post")
.notes(NOTES)
.access(Access::Public)
.refuses(&[POST_NOT_FOUND]);

const NOTES: &str = "Needs no key. A reader is an address (IPv6: a /64 network) and counts once a day UTC for each post, of the first 100,000 of a day. Who \
     reads is kept as a digest, until the post is read on another day: each reader that counts there has 500 of former days forgotten.";

#[derive(Serialize, ToSchema)]
#[schema(as = PostViews)]
pub struct ViewsOut {
    #[schema(value_type = String)]
    post_id: PostId,
    #[schema(minimum = 0)]
    view_count: i64,
}

/// Where a request without a key comes from.
pub struct Reader(IpAddr);

impl Describe for Reader {
    fn describe(_: &mut Description) {}
}

impl Argument for Reader {
    async fn take(incoming: &mut Incoming) -> Result<Self, Problem> {
        let peer = peer(&incoming.parts.extensions);
        let settings = incoming.state.settings();
        Ok(Reader(settings.client(peer, &incoming.parts.headers)))
    }
}

impl Reader {
    /// An address alone would say who reads what.
    fn digest(&self, post: &PostId) -> String {
        let network = match self.0 {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets()[..8].to_vec(),
        };
        let mut digest = Sha256::new();
        digest.update(post.as_str());
        digest.update(network);
        hex::encode(digest.finalize())
    }
}

/// Counts a reader of a published post.
pub async fn view_post(
    State(api): State<ApiState>,
    reader: Reader,
    Path(id): Path<PostId>,
    place: NobodysRead,
) -> Result<Data<ViewsOut>, Problem> {
    count(&api, &reader, &id, None, place).await
}

/// The same for a post of this company.
pub async fn view_company_post(
    State(api): State<ApiState>,
    reader: Reader,
    Path((company, id)): Path<(CompanyId, PostId)>,
    place: NobodysRead,
) -> Result<Data<ViewsOut>, Problem> {
    count(&api, &reader, &id, Some(&company), place).await
}

/// The place is kept while it waits to write: in the line of all who are not signed in, others such as a payment's event stand behind few readers.
async fn count(
    api: &ApiState,
    reader: &Reader,
    id: &PostId,
    company: Option<&CompanyId>,
    _place: NobodysRead,
) -> Result<Data<ViewsOut>, Problem> {
    let (reader, now) = (reader.digest(id), api.app().clock.now());
    let mut read = api.db().read().await?;
    let post = posts::get_published(&mut read, id.as_str())
        .await?
        .filter(|post| company.is_none_or(|company| *company == post.company_id))
        .ok_or_else(|| not_found(id.as_str()))?;
    // Who comes again costs no write.
    let is_counted = posts::is_counted(&mut read, &post.id, &reader, now).await?;
    drop(read);
    let view_count = match is_counted {
        true => post.view_count,
        false => {
            api.db()
                .write(async |write| posts::count_view(write, &post.id, &reader, now).await)
                .await?
        }
    };
    Ok(Data(ViewsOut {
        post_id: post.id,
        view_count,
    }))
}
