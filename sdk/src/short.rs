//! Bytes that are appended and compared, by means that are quick in a component. A copy whose length only the run knows is a call of the host there
//! (`memory.copy`), which takes longer than the copy of a few bytes; `==` looks at one byte after the other, and at the guest's clock each time.
//! For a [`Machine`](crate::Machine) that reads and writes bytes itself.

/// Appends any bytes; up to 64 are quick.
#[inline]
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
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

/// Whether they are the same, sixteen bytes at a time.
#[inline]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        ..4 => one.iter().zip(other).all(|(one, other)| one == other),
        4..8 => has_ends_of::<4>(one, other),
        8..16 => has_ends_of::<8>(one, other),
        _ => is_same_long(one, other),
    }
}

/// Whether bytes begin with others.
#[inline]
pub fn begins_with(bytes: &[u8], others: &[u8]) -> bool {
    bytes
        .get(..others.len())
        .is_some_and(|first| is_same(first, others))
}

/// The same of as many bytes as `END` has to twice as many: their beginning and their end, which overlap.
#[inline]
fn has_ends_of<const END: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<END>() == other.first_chunk::<END>()
        && one.last_chunk::<END>() == other.last_chunk::<END>()
}

/// The same of sixteen bytes and more.
fn is_same_long(one: &[u8], other: &[u8]) -> bool {
    let is_same = |(one, other): (&[u8; 16], &[u8; 16])| {
        u128::from_le_bytes(*one) == u128::from_le_bytes(*other)
    };
    let (ones, others) = (one.as_chunks::<16>().0, other.as_chunks::<16>().0);
    // What is left behind them overlaps with the last of them.
    let ends = one.last_chunk::<16>().zip(other.last_chunk::<16>());
    ones.iter().zip(others).all(is_same) && ends.is_some_and(is_same)
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

    /// Whatever their length, bytes are the same if each of them is.
    #[test]
    fn each_byte_is_compared() {
        let bytes: Vec<u8> = (1..=100).collect();
        for length in 0..=bytes.len() {
            let one = &bytes[..length];
            let mut other = one.to_vec();
            assert!(is_same(one, &other), "{length}");
            let longer = [one, b"x"].concat();
            assert!(!is_same(one, &longer), "{length}");
            assert!(begins_with(&longer, one) && begins_with(one, one) && begins_with(one, b""));
            assert!(!begins_with(one, &longer), "{length}");
            for at in 0..length {
                other[at] ^= 0x80;
                assert!(!is_same(one, &other), "{at} of {length}");
                assert!(!begins_with(&longer, &other), "{at} of {length}");
                other[at] = one[at];
            }
        }
    }
}
