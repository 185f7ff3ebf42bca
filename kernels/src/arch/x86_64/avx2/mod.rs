//! Four words in a register. Bits are counted by a look-up of each half byte (Muła, Kurz and Lemire).

use std::arch::x86_64::*;

use crate::{
    Isa,
    arch::vector::{Vector, intrinsics},
};

kernel! {
    /// AVX2.
    Avx2, Isa::Avx2, V256, 2,
    available: is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"),
    features: "avx2,popcnt"
}

/// Four words.
#[derive(Clone, Copy)]
struct V256(__m256i);

/// All ones in the first `n` lanes.
#[inline(always)]
unsafe fn first_lanes(n: usize) -> __m256i {
    const MASK: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];
    // SAFETY: `n <= 4`, so that four words from `4 - n` are within the eight.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(4 - n).cast()) }
}

impl Vector for V256 {
    const LANES: usize = 4;

    intrinsics! {
        fn splat(word: u64) -> Self { Self(_mm256_set1_epi64x(word as i64)) }
        fn first(word: u64) -> Self { Self(_mm256_zextsi128_si256(_mm_cvtsi64_si128(word as i64))) }
        fn load(from: *const u64) -> Self { Self(_mm256_loadu_si256(from.cast())) }
        fn load_partial(from: *const u64, n: usize) -> Self {
            Self(_mm256_maskload_epi64(from.cast(), first_lanes(n)))
        }
        fn store(self, to: *mut u64) { _mm256_storeu_si256(to.cast(), self.0) }
        fn store_partial(self, to: *mut u64, n: usize) {
            _mm256_maskstore_epi64(to.cast(), first_lanes(n), self.0)
        }
        fn stream(self, to: *mut u64) { _mm256_stream_si256(to.cast(), self.0) }
        fn fence() { _mm_sfence() }
        fn and(self, other: Self) -> Self { Self(_mm256_and_si256(self.0, other.0)) }
        fn or(self, other: Self) -> Self { Self(_mm256_or_si256(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(_mm256_xor_si256(self.0, other.0)) }
        fn and_not(self, other: Self) -> Self { Self(_mm256_andnot_si256(other.0, self.0)) }
        fn shl(self, bits: u32) -> Self { Self(_mm256_sll_epi64(self.0, _mm_cvtsi32_si128(bits as i32))) }
        fn shr(self, bits: u32) -> Self { Self(_mm256_srl_epi64(self.0, _mm_cvtsi32_si128(bits as i32))) }
        fn popcount(self) -> Self {
            let ones = _mm256_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            );
            let half = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(ones, _mm256_and_si256(self.0, half));
            let high = _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), half));
            Self(_mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256()))
        }
        fn add(self, other: Self) -> Self { Self(_mm256_add_epi64(self.0, other.0)) }
        fn is_zero(self) -> bool { _mm256_testz_si256(self.0, self.0) == 1 }
        fn top_bits(self) -> u8 { _mm256_movemask_pd(_mm256_castsi256_pd(self.0)) as u8 }
        fn sum(self) -> u64 {
            let halves = _mm_add_epi64(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            let sum = _mm_add_epi64(halves, _mm_unpackhi_epi64(halves, halves));
            _mm_cvtsi128_si64(sum) as u64
        }
        fn sum_rows(rows: [Self; 8], out: &mut [u64; 8]) -> u8 {
            let low = sum_four(rows[0], rows[1], rows[2], rows[3]);
            let high = sum_four(rows[4], rows[5], rows[6], rows[7]);
            low.store(out.as_mut_ptr());
            high.store(out.as_mut_ptr().add(4));
            low.top_bits() | high.top_bits() << 4
        }
        fn store_narrow(self, to: *mut u16) {
            // No sum is as large as 2^31, so that packing, which saturates signed numbers, is safe.
            let low = _mm256_permutevar8x32_epi32(self.0, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
            let narrow = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_castsi256_si128(low));
            _mm_storel_epi64(to.cast(), narrow)
        }
        fn within(from: *const u16, low: u16, span: u16) -> u64 {
            let (low, span) = (_mm256_set1_epi16(low as i16), _mm256_set1_epi16(span as i16));
            let mut mask = 0;
            for half in [0, 32] {
                let mut ways = [_mm256_setzero_si256(); 2];
                for (at, way) in ways.iter_mut().enumerate() {
                    let over = _mm256_sub_epi16(_mm256_loadu_si256(from.add(half + at * 16).cast()), low);
                    *way = _mm256_cmpeq_epi16(_mm256_min_epu16(over, span), over);
                }
                let bytes = _mm256_permute4x64_epi64::<0xd8>(_mm256_packs_epi16(ways[0], ways[1]));
                mask |= u64::from(_mm256_movemask_epi8(bytes) as u32) << half;
            }
            mask
        }
        fn prefetch(from: *const u64) { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
        fn interleave(from: *const u64, width: usize, to: *mut u64) {
            let mut word = 0;
            while word < width {
                let n = (width - word).min(4);
                for half in [0, 4] {
                    let from = from.add(half * width + word);
                    let mut rows = [Self::splat(0); 4];
                    for (at, row) in rows.iter_mut().enumerate() {
                        let from = from.add(at * width);
                        *row = if n == 4 { Self::load(from) } else { Self::load_partial(from, n) };
                    }
                    for (at, line) in transpose(rows).into_iter().enumerate().take(n) {
                        line.store(to.add((word + at) * 8 + half));
                    }
                }
                word += n;
            }
        }
    }
}

/// The sums of the lanes of four registers.
#[inline(always)]
unsafe fn sum_four(a: V256, b: V256, c: V256, d: V256) -> V256 {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        let ab = _mm256_add_epi64(_mm256_unpacklo_epi64(a.0, b.0), _mm256_unpackhi_epi64(a.0, b.0));
        let cd = _mm256_add_epi64(_mm256_unpacklo_epi64(c.0, d.0), _mm256_unpackhi_epi64(c.0, d.0));
        let low = _mm256_permute2x128_si256::<0x20>(ab, cd);
        let high = _mm256_permute2x128_si256::<0x31>(ab, cd);
        V256(_mm256_add_epi64(low, high))
    }
}

/// Four rows of four words to four lines, one for each word.
#[inline(always)]
unsafe fn transpose([a, b, c, d]: [V256; 4]) -> [V256; 4] {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        let (ab_even, ab_odd) = (_mm256_unpacklo_epi64(a.0, b.0), _mm256_unpackhi_epi64(a.0, b.0));
        let (cd_even, cd_odd) = (_mm256_unpacklo_epi64(c.0, d.0), _mm256_unpackhi_epi64(c.0, d.0));
        [
            V256(_mm256_permute2x128_si256::<0x20>(ab_even, cd_even)),
            V256(_mm256_permute2x128_si256::<0x20>(ab_odd, cd_odd)),
            V256(_mm256_permute2x128_si256::<0x31>(ab_even, cd_even)),
            V256(_mm256_permute2x128_si256::<0x31>(ab_odd, cd_odd)),
        ]
    }
}
