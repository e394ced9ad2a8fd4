//! Where the object store is, as an operator says it: `s3://bucket/prefix?endpoint=https://…&region=…&sslrootcert=FILE`.

use std::fmt;
use std::path::PathBuf;

use url::Url;

const WANTED: &str = "s3://bucket/prefix, with ?endpoint=https://… for one that is not Amazon's, &region=… and &sslrootcert=FILE";

/// Where it is, and in whose name it is asked.
#[derive(Clone)]
pub struct ObjectsAt {
    pub(super) bucket: String,
    pub(super) prefix: String,
    /// Amazon's of the region, if there is none.
    pub(super) endpoint: Option<String>,
    pub(super) region: Option<String>,
    /// Whose certificates are believed instead of the public ones.
    authority: Option<PathBuf>,
    /// An id and its secret.
    pub(super) keys: Option<(String, String)>,
}

/// For messages. Without the secret.
impl fmt::Display for ObjectsAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

impl fmt::Debug for ObjectsAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectsAt({self})")
    }
}

impl ObjectsAt {
    pub fn new(url: &str, keys: Option<(String, String)>) -> Result<ObjectsAt, String> {
        // What may have keys in it is not repeated where logs are.
        let wrong = || match url.contains('@') {
            true => format!("without a user and a password, and {WANTED}"),
            false => format!("not {url:?}, but {WANTED}"),
        };
        let parsed = Url::parse(url).map_err(|_| wrong())?;
        let bucket = parsed.host_str().filter(|_| parsed.scheme() == "s3");
        let has_more = !parsed.username().is_empty()
            || parsed.password().is_some()
            || parsed.port().is_some()
            || parsed.fragment().is_some();
        let mut at = ObjectsAt {
            bucket: bucket.filter(|_| !has_more).ok_or_else(wrong)?.to_owned(),
            prefix: parsed.path().trim_matches('/').to_owned(),
            endpoint: None,
            region: None,
            authority: None,
            keys,
        };
        for (name, value) in parsed.query_pairs() {
            match &*name {
                "endpoint" => at.endpoint = Some(endpoint(&value)?),
                "region" => at.region = Some(value.into_owned()),
                "sslrootcert" => at.authority = Some(PathBuf::from(value.into_owned())),
                other => return Err(format!("\"{other}\" is no parameter of it: {WANTED}")),
            }
        }
        Ok(at)
    }

    pub(super) fn authority_pem(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.authority else {
            return Ok(None);
        };
        let read = std::fs::read_to_string(path);
        let pem = read.map_err(|error| format!("sslrootcert {}: {error}", path.display()))?;
        Ok(Some(pem))
    }
}

fn endpoint(given: &str) -> Result<String, String> {
    let wrong = || {
        "its endpoint must be an http:// or https:// address without a user or a path".to_owned()
    };
    let url = Url::parse(given).map_err(|_| wrong())?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_whole = url.path() == "/" && url.query().is_none() && url.has_host();
    match matches!(url.scheme(), "http" | "https") && is_plain && is_whole {
        true => Ok(given.trim_end_matches('/').to_owned()),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_store_is_named_by_its_url() {
        let url = "s3://files/souk/eu/?endpoint=https://minio.internal:9000/&region=eu-1&sslrootcert=/etc/ca.pem";
        let keys = Some(("id".to_owned(), "hush".to_owned()));
        let at = ObjectsAt::new(url, keys).unwrap();
        assert_eq!((&*at.bucket, &*at.prefix), ("files", "souk/eu"));
        assert_eq!(at.endpoint.as_deref(), Some("https://minio.internal:9000"));
        assert_eq!(at.region.as_deref(), Some("eu-1"));
        assert_eq!(format!("{at:?}"), "ObjectsAt(s3://files/souk/eu)");
        assert!(at.authority_pem().unwrap_err().contains("/etc/ca.pem"));
        for (wrong, told) in [
            ("files", "s3://bucket/prefix"),
            ("https://files/souk", "s3://bucket/prefix"),
            ("s3:///souk", "s3://bucket/prefix"),
            ("s3://id:secret@files/souk", "s3://bucket/prefix"),
            ("s3://files?endpoint=minio:9000", "endpoint"),
            ("s3://files?endpoint=http://minio/souk", "endpoint"),
            ("s3://files?endpoint=http://id:secret@minio", "endpoint"),
            ("s3://files?zone=1", "\"zone\""),
        ] {
            let error = ObjectsAt::new(wrong, None).unwrap_err();
            assert!(error.contains(told), "{wrong}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
