//! Dot product and cosine of dense f16 and i8 vectors, for rescoring.
//!
//! Owns loops that are written once, over sixteen partial sums, and that pulp compiles for each
//! instruction set. Every backend gives the same answer, bit for bit: an i8 sum is exact, and the
//! product of two f16 is exact in f32 (11 + 11 bits of significand of 24), so that fusing the
//! multiplication with the addition, or not, rounds alike; and element `i` always goes to partial
//! sum `i % 16`, and those are added in one fixed order.

use half::{f16, slice::HalfFloatSliceExt};
use pulp::{Simd, WithSimd};

use crate::{Error, Isa, Kernels, Result, arch::opaque};

/// Partial sums, and the elements that are converted at a time.
const LANES: usize = 16;
const BLOCK: usize = 256;

/// Products summed before the sum is widened: 2^15 of 2^14 each stay below 2^31 with sixteen sums to add.
const WIDEN: usize = 1 << 15;

impl Kernels {
    /// The sum of products. 0 for empty vectors.
    ///
    /// # Errors
    /// [`Error::LengthsDiffer`].
    pub fn dot_f16(self, a: &[f16], b: &[f16]) -> Result<f32> {
        same_length(a.len(), b.len())?;
        Ok(run(self.isa(), F16 { a, b }))
    }

    /// The cosine of the angle between the two; 0 where either is all zeros.
    ///
    /// # Errors
    /// [`Error::LengthsDiffer`].
    pub fn cosine_f16(self, a: &[f16], b: &[f16]) -> Result<f32> {
        let dot = self.dot_f16(a, b)?;
        Ok(cosine(dot.into(), self.dot_f16(a, a)?.into(), self.dot_f16(b, b)?.into()))
    }

    /// The sum of products, exact. 0 for empty vectors.
    ///
    /// # Errors
    /// [`Error::LengthsDiffer`].
    pub fn dot_i8(self, a: &[i8], b: &[i8]) -> Result<i64> {
        same_length(a.len(), b.len())?;
        Ok(run(self.isa(), I8 { a, b }))
    }

    /// The cosine of the angle between the two; 0 where either is all zeros.
    ///
    /// # Errors
    /// [`Error::LengthsDiffer`].
    pub fn cosine_i8(self, a: &[i8], b: &[i8]) -> Result<f32> {
        let dot = self.dot_i8(a, b)?;
        Ok(cosine(dot as f64, self.dot_i8(a, a)? as f64, self.dot_i8(b, b)? as f64))
    }
}

fn same_length(left: usize, right: usize) -> Result<()> {
    if left == right { Ok(()) } else { Err(Error::LengthsDiffer { left, right }) }
}

fn cosine(dot: f64, a: f64, b: f64) -> f32 {
    let norms = (a * b).sqrt();
    if norms > 0.0 { (dot / norms) as f32 } else { 0.0 }
}

/// Runs `op` compiled for `isa`. The sets of pulp ask for a little more than ours (BMI, FMA), so that a
/// CPU without those takes the next one down: the answer is the same.
fn run<Op: WithSimd + Plain<Output = <Op as WithSimd>::Output>>(
    isa: Isa,
    op: Op,
) -> <Op as WithSimd>::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if matches!(isa, Isa::Avx512 | Isa::Avx512Vpopcntdq)
            && let Some(simd) = pulp::x86::V4::try_new()
        {
            return Simd::vectorize(simd, op);
        }
        if isa != Isa::Scalar
            && let Some(simd) = pulp::x86::V3::try_new()
        {
            return Simd::vectorize(simd, op);
        }
    }
    #[cfg(target_arch = "aarch64")]
    if isa != Isa::Scalar
        && let Some(simd) = pulp::aarch64::Neon::try_new()
    {
        return Simd::vectorize(simd, op);
    }
    let _ = isa;
    op.plain()
}

/// The same one element at a time.
trait Plain {
    type Output;
    fn plain(self) -> Self::Output;
}

struct F16<'a> {
    a: &'a [f16],
    b: &'a [f16],
}

impl WithSimd for F16<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f32 {
        let (mut a, mut b) = ([0.0; BLOCK], [0.0; BLOCK]);
        let mut sums = [0.0f32; LANES];
        for (from_a, from_b) in self.a.chunks(BLOCK).zip(self.b.chunks(BLOCK)) {
            let n = from_a.len();
            from_a.convert_to_f32_slice(&mut a[..n]);
            from_b.convert_to_f32_slice(&mut b[..n]);
            // Only the last block is short; zeros add nothing. (Not even a sign: sums start at +0.)
            a[n..].fill(0.0);
            b[n..].fill(0.0);
            for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
                for lane in 0..LANES {
                    sums[lane] += a[lane] * b[lane];
                }
            }
        }
        add_up(sums)
    }
}

impl Plain for F16<'_> {
    type Output = f32;

    fn plain(self) -> f32 {
        let mut sums = [0.0f32; LANES];
        for (at, (a, b)) in self.a.iter().zip(self.b).enumerate() {
            let product = a.to_f32() * b.to_f32();
            sums[at % LANES] += f32::from_bits(opaque(product.to_bits().into()) as u32);
        }
        add_up(sums)
    }
}

/// Halves again and again, in one order for all.
#[inline(always)]
fn add_up(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

struct I8<'a> {
    a: &'a [i8],
    b: &'a [i8],
}

impl WithSimd for I8<'_> {
    type Output = i64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> i64 {
        let mut total = 0;
        for (a, b) in self.a.chunks(WIDEN).zip(self.b.chunks(WIDEN)) {
            let mut sum = 0i32;
            for (a, b) in a.iter().zip(b) {
                sum += i32::from(*a) * i32::from(*b);
            }
            total += i64::from(sum);
        }
        total
    }
}

impl Plain for I8<'_> {
    type Output = i64;

    fn plain(self) -> i64 {
        let products = self.a.iter().zip(self.b).map(|(a, b)| i64::from(*a) * i64::from(*b));
        products.fold(0, |sum, product| sum + opaque(product as u64) as i64)
    }
}

/// [`Kernels::dot_f16`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::dot_f16`] and [`Kernels::active`].
pub fn dot_f16(a: &[f16], b: &[f16]) -> Result<f32> {
    Kernels::active()?.dot_f16(a, b)
}

/// [`Kernels::cosine_f16`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::cosine_f16`] and [`Kernels::active`].
pub fn cosine_f16(a: &[f16], b: &[f16]) -> Result<f32> {
    Kernels::active()?.cosine_f16(a, b)
}

/// [`Kernels::dot_i8`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::dot_i8`] and [`Kernels::active`].
pub fn dot_i8(a: &[i8], b: &[i8]) -> Result<i64> {
    Kernels::active()?.dot_i8(a, b)
}

/// [`Kernels::cosine_i8`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::cosine_i8`] and [`Kernels::active`].
pub fn cosine_i8(a: &[i8], b: &[i8]) -> Result<f32> {
    Kernels::active()?.cosine_i8(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn every_backend_gives_the_same_bits() {
        let mut rng = Rng::new(21);
        for n in (0..40).chain([255, 256, 257, 384, 1_024, 40_001]) {
            let a: Vec<f16> = (0..n).map(|_| f16::from_f64(rng.unit() * 4.0 - 2.0)).collect();
            let b: Vec<f16> = (0..n).map(|_| f16::from_f64(rng.unit() * 4.0 - 2.0)).collect();
            let i: Vec<i8> = (0..n).map(|_| rng.next_u64() as i8).collect();
            let j: Vec<i8> = (0..n).map(|_| rng.next_u64() as i8).collect();
            let real: f64 = a.iter().zip(&b).map(|(a, b)| a.to_f64() * b.to_f64()).sum();
            let exact: i64 = i.iter().zip(&j).map(|(i, j)| i64::from(*i) * i64::from(*j)).sum();
            let oracle = Kernels::new(Isa::Scalar).expect("scalar");
            for kernels in Kernels::available() {
                let dot = kernels.dot_f16(&a, &b).expect("dot");
                assert_eq!(dot.to_bits(), oracle.dot_f16(&a, &b).expect("dot").to_bits(), "{kernels:?} {n}");
                assert!((f64::from(dot) - real).abs() <= 1e-3 * (1.0 + n as f64).sqrt(), "{dot} {real}");
                assert_eq!(kernels.dot_i8(&i, &j), Ok(exact), "{kernels:?} {n}");
                assert_eq!(kernels.cosine_i8(&i, &j), oracle.cosine_i8(&i, &j));
                let same = kernels.cosine_f16(&a, &a).expect("cosine");
                assert!(n == 0 || (same - 1.0).abs() < 1e-6, "{same}");
            }
        }
    }

    #[test]
    fn extremes_and_bad_lengths() {
        for kernels in Kernels::available() {
            let most = vec![i8::MIN; 100_000];
            assert_eq!(kernels.dot_i8(&most, &most), Ok(100_000 * 16_384));
            let large = vec![f16::MAX; 3];
            assert_eq!(kernels.dot_f16(&large, &large), Ok(3.0 * 65_504.0 * 65_504.0));
            assert_eq!(kernels.cosine_i8(&[0, 0], &[1, 2]), Ok(0.0));
            let refused = Error::LengthsDiffer { left: 1, right: 2 };
            assert_eq!(kernels.dot_i8(&[1], &[1, 2]), Err(refused.clone()));
            assert_eq!(kernels.dot_f16(&large[..1], &large[..2]), Err(refused));
        }
    }
}
