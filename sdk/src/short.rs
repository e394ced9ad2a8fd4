//! Appends what is a few bytes long, as most values are. A copy whose length only the run knows is a call of the host in a component
//! (`memory.copy`), which takes longer than the copy.

/// Appends any bytes; up to 64 are quick.
#[inline]
pub(crate) fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        0 => {}
        1 => out.push(bytes[0]),
        2..4 => ends::<2>(out, bytes),
        4..8 => ends::<4>(out, bytes),
        8..16 => ends::<8>(out, bytes),
        16..32 => ends::<16>(out, bytes),
        32..=64 => ends::<32>(out, bytes),
        _ => out.extend_from_slice(bytes),
    }
}

/// Appends between `END` and twice as many bytes: their beginning and their end, which overlap.
#[inline]
fn ends<const END: usize>(out: &mut Vec<u8>, bytes: &[u8]) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<END>(), bytes.last_chunk::<END>()) {
        let behind = out.len() + bytes.len();
        out.extend_from_slice(first);
        out.truncate(behind - END);
        out.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever its length, a value is appended whole, and needs no more room than it has.
    #[test]
    fn values_of_every_length_are_appended_whole() {
        let bytes: Vec<u8> = (1..=100).collect();
        for length in 0..=bytes.len() {
            let bytes = &bytes[..length];
            let mut out = Vec::with_capacity(6 + length);
            out.extend_from_slice(b"before");
            let room = out.capacity();
            append(&mut out, bytes);
            assert_eq!(out, [&b"before"[..], bytes].concat(), "{length}");
            assert_eq!(out.capacity(), room, "{length}");
        }
    }
}
