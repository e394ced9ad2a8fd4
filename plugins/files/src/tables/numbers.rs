//! Whole numbers as Parquet and Thrift write them: seven bits in a byte, the lowest first. Each is taken from the beginning of some bytes.

/// `None` where the bytes end before the number, or it has more than 64 bits.
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// With a sign, by zigzag: 0, -1, 1, -2, …
pub fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = varint(bytes)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}
