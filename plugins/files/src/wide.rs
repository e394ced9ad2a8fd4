//! Products of decimals. What the compiler calls on this target for a product in 128 bits that must not overflow is slow, and most numbers are small:
//! here two whose product has room in 64 bits are multiplied there. (A statement that adds up products of prices takes 0.79 of the time that it takes with
//! the compiler's, TPC-H's question 1 0.86.)

/// A product that fits.
fn product(one: i128, other: i128) -> Option<i128> {
    match short(one, other) {
        Some(product) => Some(product.into()),
        None => long(one, other),
    }
}

/// One that certainly fits into 64 bits: each number is less than two to the number of its bits, and so is their product to both.
fn short(one: i128, other: i128) -> Option<i64> {
    let (one, other) = (i64::try_from(one).ok()?, i64::try_from(other).ok()?);
    let free = one.unsigned_abs().leading_zeros() + other.unsigned_abs().leading_zeros();
    (free > i64::BITS).then(|| one * other)
}

/// Apart from what nearly all are, which needs no room for what this does.
#[cold]
#[inline(never)]
fn long(one: i128, other: i128) -> Option<i128> {
    let magnitude = unsigned(one.unsigned_abs(), other.unsigned_abs())?;
    match (one < 0) == (other < 0) {
        true => i128::try_from(magnitude).ok(),
        false => 0i128.checked_sub_unsigned(magnitude),
    }
}

fn unsigned(one: u128, other: u128) -> Option<u128> {
    let halves = |number: u128| (number >> 64, number & u128::from(u64::MAX));
    let ((one_high, one_low), (other_high, other_low)) = (halves(one), halves(other));
    if one_high != 0 && other_high != 0 {
        return None;
    }
    // One of the two is zero.
    let crossed = one_high * other_low + one_low * other_high;
    match crossed >> 64 {
        0 => (crossed << 64).checked_add(one_low * other_low),
        _ => None,
    }
}

/// In place of the compiler's own, whose name it has.
#[cfg(target_family = "wasm")]
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __muloti4(one: i128, other: i128, overflows: &mut i32) -> i128 {
    let product = product(one, other);
    *overflows = product.is_none().into();
    // What does not fit is told without what is beyond, as by the compiler's.
    product.unwrap_or_else(|| one.wrapping_mul(other))
}

#[cfg(test)]
mod tests {
    use super::product;

    /// Each with each: next to every power of two, and to what has no product with most of them.
    #[test]
    fn products_are_those_of_the_compiler() {
        let mut numbers = vec![0, i128::MAX, i128::MIN];
        for power in 0..127 {
            for near in -2..=2 {
                let number = (1i128 << power) + near;
                numbers.extend([number, -number, number.wrapping_mul(0x5555_5555_5555)]);
            }
        }
        for one in &numbers {
            for other in &numbers {
                assert_eq!(
                    product(*one, *other),
                    one.checked_mul(*other),
                    "{one} {other}"
                );
            }
        }
    }
}
