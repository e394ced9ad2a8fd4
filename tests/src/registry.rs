//! An OCI registry of the test's own: Debian's `docker-registry`, which is CNCF Distribution.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::process::{free_port, spawn_tied};
use crate::tls::{TestCa, use_ring};

const READY_WITHIN: Duration = Duration::from_secs(30);
const USER: &str = "author";
const PASSWORD: &str = "secret";
/// Of the password, by bcrypt with the fewest rounds.
const PASSWORD_HASH: &str = "$2b$04$6LOxB/DogC5WkR/PHQBRpeedftg7ghn0KNAlwiKm9MxwcdSt97INy";
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

pub struct Registry {
    process: Option<Child>,
    address: String,
    directory: tempfile::TempDir,
}

impl Registry {
    /// One that speaks http and lets everybody in.
    pub async fn start() -> Registry {
        Registry::start_with("127.0.0.1", |_| String::new()).await
    }

    /// One that speaks https, by either of its names, with a certificate of this authority, and wants a login.
    pub async fn start_protected(authority: &TestCa) -> Registry {
        let leaf = authority.server(&["localhost", "127.0.0.1"]);
        let texts = [
            ("cert.pem", leaf.certificate_pem),
            ("key.pem", leaf.key_pem),
            ("ca.pem", authority.pem()),
            ("htpasswd", format!("{USER}:{PASSWORD_HASH}\n")),
        ];
        Registry::start_with("localhost", |directory| {
            for (name, text) in &texts {
                std::fs::write(directory.join(name), text).expect("a file");
            }
            let path = |name: &str| directory.join(name).display().to_string();
            format!(
                "  tls: {{certificate: {:?}, key: {:?}}}\nauth: {{htpasswd: {{realm: test, path: {:?}}}}}\n",
                path("cert.pem"),
                path("key.pem"),
                path("htpasswd")
            )
        })
        .await
    }

    async fn start_with(name: &str, more: impl FnOnce(&std::path::Path) -> String) -> Registry {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let config = format!(
            "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {:?}}}}}\n\
             http:\n  addr: \"127.0.0.1:{port}\"\n{}",
            directory.path().join("data").display().to_string(),
            more(directory.path())
        );
        let file = directory.path().join("config.yml");
        std::fs::write(&file, config).expect("a file");
        let mut command = Command::new("docker-registry");
        command
            .arg("serve")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = spawn_tied(command, libc::SIGKILL)
            .expect("docker-registry: run tests/run, which installs it");
        let since = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                since.elapsed() < READY_WITHIN,
                "the registry does not listen"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        use_ring();
        Registry {
            process: Some(process),
            address: format!("{name}:{port}"),
            directory,
        }
    }

    /// `hello:1.0` in it, as a command is told.
    pub fn reference(&self, rest: &str) -> String {
        format!("oci://{}/acme/{rest}", self.address)
    }

    /// Where `docker login` would have kept the login: for `DOCKER_CONFIG`.
    pub fn login(&self) -> String {
        let auth = STANDARD.encode(format!("{USER}:{PASSWORD}"));
        let config = json!({"auths": {(self.address.clone()): {"auth": auth}}});
        std::fs::write(
            self.directory.path().join("config.json"),
            config.to_string(),
        )
        .expect("a file");
        self.directory.path().display().to_string()
    }

    /// Where the authority of its certificate is.
    pub fn authority(&self) -> String {
        self.directory.path().join("ca.pem").display().to_string()
    }

    /// The file in which it keeps a blob, for who tampers with it.
    pub fn blob_file(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").expect("a digest");
        let blobs = "data/docker/registry/v2/blobs/sha256";
        let below = format!("{blobs}/{}/{hex}/data", &hex[..2]);
        self.directory.path().join(below)
    }

    pub async fn manifest(&self, repository: &str, tag: &str) -> Value {
        let path = format!("{repository}/manifests/{tag}");
        let got = self.http(reqwest::Method::GET, &path);
        let got = got.header("accept", MANIFEST).send().await;
        let got = got.and_then(reqwest::Response::error_for_status);
        got.expect("a manifest").json().await.expect("JSON")
    }

    pub async fn blob(&self, repository: &str, digest: &str) -> Vec<u8> {
        let path = format!("{repository}/blobs/{digest}");
        let got = self.http(reqwest::Method::GET, &path).send().await;
        let got = got.and_then(reqwest::Response::error_for_status);
        got.expect("a blob").bytes().await.expect("bytes").to_vec()
    }

    /// Answers the blob's descriptor.
    pub async fn put_blob(&self, repository: &str, kind: &str, bytes: &[u8]) -> Value {
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(bytes)));
        let begun = self.http(
            reqwest::Method::POST,
            &format!("{repository}/blobs/uploads/"),
        );
        let begun = begun.send().await.expect("the registry answers");
        let place = begun.headers()["location"].to_str().expect("text");
        let put = reqwest::Client::new()
            .put(format!("{place}&digest={digest}"))
            .body(bytes.to_vec())
            .send()
            .await
            .and_then(reqwest::Response::error_for_status);
        put.expect("a blob");
        json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
    }

    pub async fn put_manifest(&self, repository: &str, tag: &str, manifest: &Value) {
        let path = format!("{repository}/manifests/{tag}");
        let put = self.http(reqwest::Method::PUT, &path);
        let put = put
            .header("content-type", MANIFEST)
            .body(manifest.to_string());
        let put = put.send().await;
        let put = put.and_then(reqwest::Response::error_for_status);
        put.expect("a manifest");
    }

    fn http(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}/v2/acme/{path}", self.address);
        reqwest::Client::new().request(method, url)
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("a process of ours");
            process.wait().expect("a process of ours");
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.kill();
    }
}
