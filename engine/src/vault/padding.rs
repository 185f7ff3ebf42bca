//! Padding, so that a sealed length tells little about a text's length.
//!
//! Padmé: the padded length keeps only as many leading bits as the length of its exponent, which
//! leaks O(log log n) bits and costs at most 12 % (Nikitin et al., "Reducing Metadata Leakage from
//! Encrypted Files and Communication with PURBs", PoPETs 2019, section 4).

use zeroize::Zeroizing;

/// Short records are all the same length.
const SHORTEST: usize = 64;
const LENGTH_BYTES: usize = 4;

/// The Padmé length for `len` bytes; never less than `len`.
fn padme(len: usize) -> usize {
    if len < 2 {
        return len;
    }
    let exponent = len.ilog2();
    let kept = exponent.ilog2() + 1;
    let mask = (1usize << exponent.saturating_sub(kept)) - 1;
    len.saturating_add(mask) & !mask
}

/// `payload` behind its length, filled up with zeros. `None` if it is 4 GiB or longer.
pub(super) fn pad(payload: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let length = u32::try_from(payload.len()).ok()?;
    let padded = padme(payload.len() + LENGTH_BYTES).max(SHORTEST);
    let mut out = Zeroizing::new(Vec::with_capacity(padded));
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(payload);
    out.resize(padded, 0);
    Some(out)
}

/// The payload in `padded`, or `None` if its length is not one that [`pad`] writes.
pub(super) fn unpad(padded: &[u8]) -> Option<&[u8]> {
    let (length, rest) = padded.split_first_chunk::<LENGTH_BYTES>()?;
    rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_padded_comes_back() {
        for len in (0..2_000).chain([32_768, 70_000, 1 << 20]) {
            let payload = vec![9; len];
            let padded = pad(&payload).unwrap();
            assert_eq!(unpad(&padded).unwrap(), payload);
        }
    }

    #[test]
    fn padding_costs_at_most_twelve_percent_beyond_the_shortest() {
        for len in 100..100_000 {
            let padded = padme(len);
            assert!(padded >= len && padded as f64 <= len as f64 * 1.12, "{len} became {padded}");
        }
    }

    #[test]
    fn lengths_fall_into_few_classes() {
        let classes: std::collections::BTreeSet<_> = (0..32_768).map(|n| padme(n).max(SHORTEST)).collect();
        assert!(classes.len() < 150, "{} classes", classes.len());
    }

    #[test]
    fn a_length_beyond_the_bytes_is_refused() {
        assert_eq!(unpad(&[255, 255, 255, 255, 0]), None);
        assert_eq!(unpad(&[1, 0]), None);
    }
}
