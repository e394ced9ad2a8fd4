//! Builds the guests, so that a guest that does not compile is a test that does not compile.

fn main() {
    souk_build::generate::guests(concat!(env!("CARGO_MANIFEST_DIR"), "/guests"));
}
