use super::{FileOut, refusal};
use crate::query::parameters;
use crate::refusals::{
    FILE_QUOTA_EXCEEDED, INVALID_REQUEST, INVALID_STATE, UNSUPPORTED_MEDIA_TYPE,
};
use crate::{
    ApiState, Caller, Created, Data, Either, Media, Operation, Path, Problem, Query, Upload,
};
use axum::extract::State;
use http::{HeaderMap, header};
use souk_app::files::{self, FILE_BYTES_MAX, UPLOAD_MEMORY_MAX};
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::put("put_file", "/companies/{company_id}/files/{name}")
    .about("Files", "Upload a file, or replace it")
    .notes(
        "The body is the file, 1 byte to 1 GiB, with any content type but that of a form, whole and as it is: 400 with a `Content-Range`, 415 with a \
         `Content-Encoding` but `identity`. 201 for a new name, 200 for a \
         replaced file, which is seen from the next request on. A name is one path segment: letters, \
         digits, `_`, `.` and `-`, not beginning with `.` or `-`. 409 `FILE_QUOTA_EXCEEDED` when the company \
         has as many files, or bytes of them, as it may have. A file that connections read is not replaced by one of which an engine of theirs says \
         that it cannot read it: 409 `INVALID_STATE` says which (`details.connection_id`) and why, and nothing is changed. An engine that is busy, \
         missing or slower than 20 s says nothing. The published products on them are not tested \
         with it: `untested_products` counts them, `…/test` of each tries it.",
    )
    .needs(Role::DataEngineer, Permission::Write)
    .refuses(&[FILE_QUOTA_EXCEEDED, INVALID_STATE, UNSUPPORTED_MEDIA_TYPE]);

parameters! {
    pub struct Wanted {
        /// Replace a file that connections read without asking their engines whether they can read the new one.
        unchecked: bool = false,
    }
}

/// A file of any kind.
pub struct AnyFile;

impl Media for AnyFile {
    const CONTENT_TYPE: &'static str = "application/octet-stream";
    const MEMORY_BYTES_MAX: u64 = UPLOAD_MEMORY_MAX;
}

/// Streams the body to disk; the file is there whole or not at all.
pub async fn put_file(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, name)): Path<(CompanyId, String)>,
    Query(query): Query<Wanted>,
    headers: HeaderMap,
    upload: Upload<AnyFile>,
) -> Result<Either<Created<FileOut>, Data<FileOut>>, Problem> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|size| size > FILE_BYTES_MAX) {
        return Err(Problem::too_large(FILE_BYTES_MAX));
    }
    refuse_parts(&headers)?;
    if is_form(&headers) {
        let message = "the body is the file itself, and not a form with the file in it (curl: --data-binary @FILE, not -F); nothing was changed";
        return Err(Problem::of(INVALID_REQUEST, message));
    }
    let company = caller.company();
    let (body, lost) = (upload.body.into_data_stream(), upload.lost);
    // Its place among uploads, and a host that stops waits for it.
    let held = (caller.clone(), api.detach());
    let wanted = files::Upload {
        name: &name,
        declared,
        is_unchecked: query.unchecked,
    };
    let taken = files::put(api.app(), company, wanted, body, held)
        .await
        .map_err(|error| lost.or(refusal(&name)(error)))?;
    Ok(match taken.is_new {
        true => Either::This(Created {
            location: format!("/companies/{company}/files/{name}"),
            data: FileOut::from(taken),
        }),
        false => Either::That(Data(FileOut::from(taken))),
    })
}

/// A part of the file, or what has to be unpacked first, would take the file's place as it comes.
fn refuse_parts(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(header::CONTENT_RANGE) {
        let message = "a file is sent whole, and Content-Range says that this is a part of it; nothing was changed: send all of it, without that header";
        return Err(Problem::of(INVALID_REQUEST, message));
    }
    let codings = headers.get_all(header::CONTENT_ENCODING);
    let mut codings = codings
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let is_plain = codings.all(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"identity"));
    if !is_plain {
        let message = "the body is kept as it comes, and Content-Encoding says that it is packed; nothing was changed: send the file itself, without that header \
                       (a .csv.gz is a file of its own, whose content is not encoded)";
        return Err(Problem::of(UNSUPPORTED_MEDIA_TYPE, message));
    }
    Ok(())
}

/// Kept as it comes it would be a file that no engine reads, which is found out only when a connection of it is tested.
fn is_form(headers: &HeaderMap) -> bool {
    const FORM: &[u8] = b"multipart/form-data";
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.as_bytes().get(..FORM.len()))
        .is_some_and(|kind| kind.eq_ignore_ascii_case(FORM))
}
