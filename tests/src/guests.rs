//! The guests as bytes: components that behave in one way each, well or badly. Their sources, one folder each,
//! are in `tests/guests`, and say at the top what they do.

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// No WebAssembly at all.
pub const NOT_A_COMPONENT: &[u8] = b"this is not a component";

/// WebAssembly, but an (empty) core module and no component.
pub const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";
