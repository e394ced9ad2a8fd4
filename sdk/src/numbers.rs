//! Numbers as sources have them and the contract wants them.

/// Up to here every whole number is a single of its own. Beyond it singles are further apart than their last digits.
const SINGLE_EXACT_MAX: f32 = 16_777_216.0;

/// The double whose shortest digits are those of the single: 0.1 and 1e38, not 0.10000000149011612 and 9.999999680285692e37, which nobody has written.
#[inline]
pub fn widened(value: f32) -> f64 {
    let wide = f64::from(value);
    let is_exact = value.fract() == 0.0 && value.abs() <= SINGLE_EXACT_MAX;
    match is_exact || !value.is_finite() {
        true => wide,
        false => value.to_string().parse().unwrap_or(wide),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many digits as whoever wrote them.
    #[test]
    fn singles_keep_their_digits() {
        for (single, double) in [
            (0.1_f32, 0.1_f64),
            (-1.5, -1.5),
            (-0.0, -0.0),
            (16_777_216.0, 16_777_216.0),
            (33_554_432.0, 33_554_432.0),
            (123_456_792.0, 123_456_790.0),
            (1e38, 1e38),
            (f32::MAX, 3.402_823_5e38),
            (f32::NEG_INFINITY, f64::NEG_INFINITY),
        ] {
            assert_eq!(widened(single).to_bits(), double.to_bits(), "{single}");
        }
        assert!(widened(f32::NAN).is_nan());
    }
}
