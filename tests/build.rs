//! Builds the guests and the SDK's example, so that one that does not compile is a test that does not compile.

fn main() {
    souk_build::generate::guests(&[
        concat!(env!("CARGO_MANIFEST_DIR"), "/guests"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/examples/hello"),
    ]);
}
