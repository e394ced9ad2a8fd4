//! Files as a source: the connector `files`, and archives of several files.
//!
//! The connector takes so long to build that debug builds do not bundle it: `tests/run --all-engines` does, and says where it is.

use std::ffi::OsString;

use crate::client::Client;

/// Where the component is, if it was built.
pub fn component() -> Option<OsString> {
    std::env::var_os("SOUK_FILES_COMPONENT")
}

/// Puts the connector to work for the platform, as an operator does, where it is not bundled.
pub async fn put_to_work(platform: &Client) {
    if platform.get("/connectors/files").await.status == 200 {
        return;
    }
    let path = component().expect("tests/run --all-engines");
    let wasm = std::fs::read(path).expect("the component");
    let uploaded = platform.post_wasm("/connectors?activate=true", wasm).await;
    uploaded.expect(201);
}

/// A tar archive: a header of 512 bytes for each, and its bytes up to the next multiple of that.
pub fn archive<B: AsRef<[u8]>>(files: &[(&str, B)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, text) in files {
        let text = text.as_ref();
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        header[263..265].copy_from_slice(b"00");
        header[148..156].copy_from_slice(b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(text);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1_024, 0);
    bytes
}
