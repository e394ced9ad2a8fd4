//! Builds every connector beside this file for WebAssembly.

fn main() {
    souk_build::generate::bundle(env!("CARGO_MANIFEST_DIR"));
}
