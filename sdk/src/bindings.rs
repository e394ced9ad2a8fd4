//! What `wit-bindgen` writes from `wit/v1`. The two worlds differ in what the host links, not in what a
//! connector exports, so one set of bindings serves both.
#![allow(unsafe_code, missing_docs, clippy::all)]

wit_bindgen::generate!({
    path: "wit/v1",
    world: "wire-connector",
    pub_export_macro: true,
    export_macro_name: "export_bindings",
    default_bindings_module: "souk_sdk::bindings",
    additional_derives: [PartialEq],
});

/// What `wit-bindgen` writes from `wit/publisher-v1`, in the types of the above.
pub mod publisher {
    wit_bindgen::generate!({
        path: ["wit/v1", "wit/publisher-v1"],
        world: "souk:publisher/publisher",
        pub_export_macro: true,
        export_macro_name: "export_publisher_bindings",
        default_bindings_module: "souk_sdk::bindings::publisher",
        with: { "souk:connector/types@1.0.0": crate::bindings::souk::connector::types },
        additional_derives: [PartialEq],
    });
}
