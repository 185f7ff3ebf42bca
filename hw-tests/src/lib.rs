//! What the tests of every backend share.
//!
//! Owns the oracle, which says what each operation means with one loop over single bits, and the
//! walk over the backends, which says aloud which of them it had to skip.
#![forbid(unsafe_code)]

pub mod oracle;

use std::io::Write;

use warm_kernels::{Hypervector, Isa, Kernels, Rng};

/// Runs `test` on every backend of this machine. Those that it lacks are printed, past the test
/// harness' capture, and counted.
pub fn on_every_backend(name: &str, test: impl Fn(Kernels)) {
    let mut skipped = Vec::new();
    let mut ran = Vec::new();
    for isa in Isa::ALL {
        match Kernels::new(isa) {
            Ok(kernels) => {
                test(kernels);
                ran.push(isa.name());
            }
            Err(_) => skipped.push(isa.name()),
        }
    }
    assert!(!ran.is_empty(), "no backend at all");
    let line =
        format!("{name}: ran on {}; SKIPPED {}: {}\n", ran.join(" "), skipped.len(), skipped.join(" "));
    // Not `eprint!`, which the harness would swallow when the test passes.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// A random hypervector.
pub fn random(bits: usize, rng: &mut Rng) -> Hypervector {
    Hypervector::random(bits, rng).expect("a dimension")
}

/// Dimensions around every vector width and every unrolled loop, in bits.
pub fn dimensions() -> impl Iterator<Item = usize> {
    (1..=20).chain([23, 24, 25, 31, 32, 33, 63, 64, 65, 127, 128, 129, 157]).map(|words| words * 64)
}
