//! Eight words in a register. The vector is shared with the set that has VPOPCNTDQ; here bits are
//! counted by a look-up of each half byte.

use std::arch::x86_64::*;

use crate::{
    Isa,
    arch::vector::{Vector, intrinsics},
};

kernel! {
    /// AVX-512 F, BW and DQ.
    Avx512, Isa::Avx512, V512<false>, 4,
    available: is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("popcnt"),
    features: "avx512f,avx512bw,avx512dq,popcnt"
}

/// Eight words; `COUNTS` says that the CPU has VPOPCNTDQ.
#[derive(Clone, Copy)]
pub(super) struct V512<const COUNTS: bool>(__m512i);

impl<const COUNTS: bool> Vector for V512<COUNTS> {
    const LANES: usize = 8;

    intrinsics! {
        fn splat(word: u64) -> Self { Self(_mm512_set1_epi64(word as i64)) }
        fn first(word: u64) -> Self { Self(_mm512_zextsi128_si512(_mm_cvtsi64_si128(word as i64))) }
        fn load(from: *const u64) -> Self { Self(_mm512_loadu_si512(from.cast())) }
        fn load_partial(from: *const u64, n: usize) -> Self {
            Self(_mm512_maskz_loadu_epi64((1 << n) - 1, from.cast()))
        }
        fn store(self, to: *mut u64) { _mm512_storeu_si512(to.cast(), self.0) }
        fn store_partial(self, to: *mut u64, n: usize) {
            _mm512_mask_storeu_epi64(to.cast(), (1 << n) - 1, self.0)
        }
        fn stream(self, to: *mut u64) { _mm512_stream_si512(to.cast(), self.0) }
        fn fence() { _mm_sfence() }
        fn and(self, other: Self) -> Self { Self(_mm512_and_si512(self.0, other.0)) }
        fn or(self, other: Self) -> Self { Self(_mm512_or_si512(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(_mm512_xor_si512(self.0, other.0)) }
        fn and_not(self, other: Self) -> Self { Self(_mm512_andnot_si512(other.0, self.0)) }
        fn shl(self, bits: u32) -> Self { Self(_mm512_sll_epi64(self.0, _mm_cvtsi32_si128(bits as i32))) }
        fn shr(self, bits: u32) -> Self { Self(_mm512_srl_epi64(self.0, _mm_cvtsi32_si128(bits as i32))) }
        fn popcount(self) -> Self {
            if COUNTS {
                return Self(_mm512_popcnt_epi64(self.0));
            }
            let ones = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
            let half = _mm512_set1_epi8(15);
            let low = _mm512_shuffle_epi8(ones, _mm512_and_si512(self.0, half));
            let high = _mm512_shuffle_epi8(ones, _mm512_and_si512(_mm512_srli_epi16::<4>(self.0), half));
            Self(_mm512_sad_epu8(_mm512_add_epi8(low, high), _mm512_setzero_si512()))
        }
        fn add(self, other: Self) -> Self { Self(_mm512_add_epi64(self.0, other.0)) }
        fn is_zero(self) -> bool { _mm512_test_epi64_mask(self.0, self.0) == 0 }
        fn top_bits(self) -> u8 { _mm512_movepi64_mask(self.0) }
        fn sum(self) -> u64 { _mm512_reduce_add_epi64(self.0) as u64 }
        fn sum_rows(rows: [Self; 8], out: &mut [u64; 8]) -> u8 {
            let [a, b, c, d, e, f, g, h] = rows;
            let low = fold(pair(a.0, b.0), pair(c.0, d.0));
            let high = fold(pair(e.0, f.0), pair(g.0, h.0));
            let sums = Self(fold(low, high));
            sums.store(out.as_mut_ptr());
            sums.top_bits()
        }
        fn store_narrow(self, to: *mut u16) {
            _mm_storeu_si128(to.cast(), _mm512_cvtusepi64_epi16(self.0))
        }
        fn within(from: *const u16, low: u16, span: u16) -> u64 {
            let (low, span) = (_mm512_set1_epi16(low as i16), _mm512_set1_epi16(span as i16));
            let [first, second] = [from, from.add(32)].map(|from| _mm512_loadu_si512(from.cast()));
            let first = _mm512_cmple_epu16_mask(_mm512_sub_epi16(first, low), span);
            let second = _mm512_cmple_epu16_mask(_mm512_sub_epi16(second, low), span);
            u64::from(first) | u64::from(second) << 32
        }
        fn prefetch(from: *const u64) { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
        fn xor3(self, b: Self, c: Self) -> Self { Self(_mm512_ternarylogic_epi64::<0x96>(self.0, b.0, c.0)) }
        fn majority(self, b: Self, c: Self) -> Self {
            Self(_mm512_ternarylogic_epi64::<0xe8>(self.0, b.0, c.0))
        }
        fn four_lines(from: *const u64) -> [Self; 4] {
            let [a, b, c, d] = transpose_halves(from);
            [Self(a), Self(b), Self(c), Self(d)]
        }
        fn interleave(from: *const u64, width: usize, to: *mut u64) {
            if width == 4 {
                for (word, line) in Self::four_lines(from).into_iter().enumerate() {
                    line.store(to.add(word * 8));
                }
                return;
            }
            let mut word = 0;
            while word + 8 <= width {
                let mut rows = [_mm512_setzero_si512(); 8];
                for (at, row) in rows.iter_mut().enumerate() {
                    *row = Self::load(from.add(at * width + word)).0;
                }
                for (at, line) in transpose(rows).into_iter().enumerate() {
                    Self(line).store(to.add((word + at) * 8));
                }
                word += 8;
            }
            let rest = width - word;
            if rest > 0 {
                let mut rows = [_mm512_setzero_si512(); 8];
                for (at, row) in rows.iter_mut().enumerate() {
                    *row = Self::load_partial(from.add(at * width + word), rest).0;
                }
                for (at, line) in transpose(rows).into_iter().enumerate().take(rest) {
                    Self(line).store(to.add((word + at) * 8));
                }
            }
        }
    }
}

/// In each 128 bits the sum of `a`'s two words, then that of `b`'s.
#[inline(always)]
unsafe fn pair(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the caller's promise, passed on.
    unsafe { _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)) }
}

/// Sums of neighbouring 128 bits: two of `a`, then two of `b`.
#[inline(always)]
unsafe fn fold(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the caller's promise, passed on.
    unsafe { _mm512_add_epi64(_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b)) }
}

/// Four registers of four 128-bit parts, transposed.
#[inline(always)]
unsafe fn transpose_parts(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        let (ab_even, ab_odd) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b));
        let (cd_even, cd_odd) = (_mm512_shuffle_i64x2::<0x88>(c, d), _mm512_shuffle_i64x2::<0xdd>(c, d));
        [
            _mm512_shuffle_i64x2::<0x88>(ab_even, cd_even),
            _mm512_shuffle_i64x2::<0x88>(ab_odd, cd_odd),
            _mm512_shuffle_i64x2::<0xdd>(ab_even, cd_even),
            _mm512_shuffle_i64x2::<0xdd>(ab_odd, cd_odd),
        ]
    }
}

/// Eight rows of eight words to eight lines, one for each word.
#[inline(always)]
unsafe fn transpose([a, b, c, d, e, f, g, h]: [__m512i; 8]) -> [__m512i; 8] {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        let even = transpose_parts(
            _mm512_unpacklo_epi64(a, b),
            _mm512_unpacklo_epi64(c, d),
            _mm512_unpacklo_epi64(e, f),
            _mm512_unpacklo_epi64(g, h),
        );
        let odd = transpose_parts(
            _mm512_unpackhi_epi64(a, b),
            _mm512_unpackhi_epi64(c, d),
            _mm512_unpackhi_epi64(e, f),
            _mm512_unpackhi_epi64(g, h),
        );
        [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
    }
}

/// Eight rows of four words, two in a register, to four lines.
#[inline(always)]
unsafe fn transpose_halves(from: *const u64) -> [__m512i; 4] {
    // SAFETY: `from` is valid for 32 words.
    unsafe {
        let load = [
            _mm512_loadu_si512(from.cast()),
            _mm512_loadu_si512(from.add(8).cast()),
            _mm512_loadu_si512(from.add(16).cast()),
            _mm512_loadu_si512(from.add(24).cast()),
        ];
        let first = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
        let second = _mm512_setr_epi64(2, 6, 10, 14, 3, 7, 11, 15);
        let low = [
            _mm512_permutex2var_epi64(load[0], first, load[1]),
            _mm512_permutex2var_epi64(load[0], second, load[1]),
        ];
        let high = [
            _mm512_permutex2var_epi64(load[2], first, load[3]),
            _mm512_permutex2var_epi64(load[2], second, load[3]),
        ];
        [
            _mm512_shuffle_i64x2::<0x44>(low[0], high[0]),
            _mm512_shuffle_i64x2::<0xee>(low[0], high[0]),
            _mm512_shuffle_i64x2::<0x44>(low[1], high[1]),
            _mm512_shuffle_i64x2::<0xee>(low[1], high[1]),
        ]
    }
}
