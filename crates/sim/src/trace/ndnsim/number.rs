//! Numbers as C++ streams write them by default: `%g` with six significant digits.

use core::fmt;

/// Significant digits.
const DIGITS: usize = 6;

/// A number that is displayed as `std::ostream` does it.
#[derive(Clone, Copy, Debug)]
pub(super) struct General(pub(super) f64);

impl fmt::Display for General {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_finite() {
            let sign = if self.0.is_sign_negative() { "-" } else { "" };
            return write!(f, "{sign}{}", if self.0.is_nan() { "nan" } else { "inf" });
        }
        // Rounded to six digits first: this decides about the exponent.
        let scientific = format!("{:.*e}", DIGITS - 1, self.0);
        let (digits, exponent) = scientific.split_once('e').expect("the format has an e");
        let exponent: i32 = exponent.parse().expect("what follows the e is a number");
        let decimals = 5 - exponent;
        match usize::try_from(decimals) {
            Ok(decimals) if exponent >= -4 => {
                f.write_str(trimmed(&format!("{:.decimals$}", self.0)))
            }
            _ => {
                let sign = if exponent < 0 { '-' } else { '+' };
                write!(
                    f,
                    "{}e{sign}{:02}",
                    trimmed(digits),
                    exponent.unsigned_abs()
                )
            }
        }
    }
}

/// Without zeros at the end of a fraction.
fn trimmed(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `printf("%g")` gives, which C++ streams do by default.
    #[test]
    fn numbers_look_as_in_cpp() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (100.0, "100"),
            (123_456.0, "123456"),
            (123_456.5, "123456"),
            (123_457.5, "123458"),
            (999_999.0, "999999"),
            (999_999.5, "1e+06"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (1e10, "1e+10"),
            (1e100, "1e+100"),
            (1.0 / 3.0, "0.333333"),
            (2.0 / 3.0, "0.666667"),
            (0.023_456_789, "0.0234568"),
            (0.000_1, "0.0001"),
            (0.000_123_456_7, "0.000123457"),
            (0.000_099_999_99, "0.0001"),
            (0.000_099_999_94, "9.99999e-05"),
            (1.5e-5, "1.5e-05"),
            (-12.25, "-12.25"),
            (23_456.789_1, "23456.8"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(General(number).to_string(), expected);
        }
    }
}
