//! Components that no compiler makes: the guests' bytes, changed. A component is a list of sections, and more of them may be put at its end.

use wasmparser::{Parser, Payload};

/// How a component describes itself, as its bytes say: one of the words of `guests/src/lib.rs`.
pub const DESCRIBES: &[&str] = &["loops", "traps", "memory", "large", "named"];

const DESCRIBE: &[u8] = b"souk-hostile-mark:describe=";
const VERSION: &[u8] = b";version=";

/// This component, describing itself in this way, as version `1.0.number`.
pub fn marked(wasm: &[u8], describe: &str, number: u32) -> Vec<u8> {
    let mut bytes = wasm.to_vec();
    let at = find(&bytes, DESCRIBE).expect("a component of the hostile guests") + DESCRIBE.len();
    bytes[at..at + 6].copy_from_slice(format!("{describe:.<6}").as_bytes());
    let at = at + 6;
    assert!(bytes[at..].starts_with(VERSION), "the mark is as it was");
    let at = at + VERSION.len();
    bytes[at..at + 6].copy_from_slice(format!("{number:06}").as_bytes());
    bytes
}

/// This component with so many more core instances, which do nothing.
pub fn with_instances(wasm: &[u8], instances: usize) -> Vec<u8> {
    let module = core_modules(wasm);
    let mut bytes = wasm.to_vec();
    section(&mut bytes, CORE_MODULE, b"\0asm\x01\0\0\0");
    let mut body = leb128(instances);
    for _ in 0..instances {
        // Instantiate this module with nothing.
        body.push(0x00);
        body.extend(leb128(module));
        body.extend(leb128(0));
    }
    section(&mut bytes, CORE_INSTANCE, &body);
    bytes
}

/// This component with a module of so many functions, which nobody calls: work for the compiler only.
pub fn with_functions(wasm: &[u8], functions: usize) -> Vec<u8> {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    // One type: a number in, a number out.
    section(&mut module, 1, &[1, 0x60, 1, 0x7e, 1, 0x7e]);
    let types: Vec<u8> = leb128(functions)
        .into_iter()
        .chain(std::iter::repeat_n(0, functions))
        .collect();
    section(&mut module, 3, &types);
    let body = function();
    let mut code = leb128(functions);
    for _ in 0..functions {
        code.extend(leb128(body.len()));
        code.extend(&body);
    }
    section(&mut module, 10, &code);
    let mut bytes = wasm.to_vec();
    section(&mut bytes, CORE_MODULE, &module);
    bytes
}

/// Three hundred times: the argument, multiplied and shifted by itself. No locals.
fn function() -> Vec<u8> {
    const GET: [u8; 2] = [0x20, 0];
    const SET: [u8; 2] = [0x21, 0];
    const MUL: u8 = 0x7e;
    const ROTL: u8 = 0x89;
    let mut body = vec![0];
    for _ in 0..300 {
        body.extend([GET[0], GET[1], GET[0], GET[1], MUL, GET[0], GET[1], ROTL]);
        body.extend(SET);
    }
    body.extend([GET[0], GET[1], 0x0b]);
    body
}

const CORE_MODULE: u8 = 1;
const CORE_INSTANCE: u8 = 2;

fn section(bytes: &mut Vec<u8>, id: u8, body: &[u8]) {
    bytes.push(id);
    bytes.extend(leb128(body.len()));
    bytes.extend(body);
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        match number {
            0 => {
                bytes.push(low);
                return bytes;
            }
            _ => bytes.push(low | 0x80),
        }
    }
}

/// How many core modules the outermost component has: the index of the next one.
fn core_modules(wasm: &[u8]) -> usize {
    let (mut depth, mut modules) = (0, 0);
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.expect("a component of the guests") {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ModuleSection { .. } if depth == 1 => modules += 1,
            _ => {}
        }
    }
    modules
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guests;

    /// What is put at the end of a component is read as a part of it.
    #[test]
    fn changed_components_are_components() {
        let calm = guests::HOSTILE_HTTP;
        for changed in [
            marked(calm, "loops", 7),
            with_instances(calm, 12),
            with_functions(calm, 50),
        ] {
            wasmparser::validate(&changed).expect("a valid component");
        }
        assert_eq!(
            core_modules(&with_instances(calm, 3)),
            core_modules(calm) + 1
        );
    }
}
