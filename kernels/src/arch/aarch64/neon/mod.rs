//! Two words in a register. Bits are counted by the byte and summed in pairs.

use std::arch::{aarch64::*, asm};

use crate::{
    Isa,
    arch::vector::{Vector, intrinsics},
};

kernel! {
    /// NEON.
    Neon, Isa::Neon, V128, 4,
    available: std::arch::is_aarch64_feature_detected!("neon"),
    features: "neon"
}

/// Two words.
#[derive(Clone, Copy)]
struct V128(uint64x2_t);

impl Vector for V128 {
    const LANES: usize = 2;

    intrinsics! {
        fn splat(word: u64) -> Self { Self(vdupq_n_u64(word)) }
        fn first(word: u64) -> Self { Self(vcombine_u64(vcreate_u64(word), vcreate_u64(0))) }
        fn load(from: *const u64) -> Self { Self(vld1q_u64(from)) }
        fn load_partial(from: *const u64, n: usize) -> Self {
            if n == 0 { Self::splat(0) } else { Self(vcombine_u64(vld1_u64(from), vcreate_u64(0))) }
        }
        fn store(self, to: *mut u64) { vst1q_u64(to, self.0) }
        fn store_partial(self, to: *mut u64, n: usize) {
            if n > 0 {
                vst1_u64(to, vget_low_u64(self.0));
            }
        }
        fn stream(self, to: *mut u64) { self.store(to) }
        fn fence() {}
        fn and(self, other: Self) -> Self { Self(vandq_u64(self.0, other.0)) }
        fn or(self, other: Self) -> Self { Self(vorrq_u64(self.0, other.0)) }
        fn xor(self, other: Self) -> Self { Self(veorq_u64(self.0, other.0)) }
        fn and_not(self, other: Self) -> Self { Self(vbicq_u64(self.0, other.0)) }
        fn shl(self, bits: u32) -> Self { Self(vshlq_u64(self.0, vdupq_n_s64(i64::from(bits)))) }
        fn shr(self, bits: u32) -> Self { Self(vshlq_u64(self.0, vdupq_n_s64(-i64::from(bits)))) }
        fn popcount(self) -> Self {
            Self(vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u64(self.0))))))
        }
        fn add(self, other: Self) -> Self { Self(vaddq_u64(self.0, other.0)) }
        fn is_zero(self) -> bool { vmaxvq_u32(vreinterpretq_u32_u64(self.0)) == 0 }
        fn top_bits(self) -> u8 {
            let bits = vshrq_n_u64::<63>(self.0);
            (vgetq_lane_u64::<0>(bits) | vgetq_lane_u64::<1>(bits) << 1) as u8
        }
        fn sum(self) -> u64 { vaddvq_u64(self.0) }
        fn sum_rows(rows: [Self; 8], out: &mut [u64; 8]) -> u8 {
            let mut below = 0;
            for pair in 0..4 {
                let sums = Self(vpaddq_u64(rows[2 * pair].0, rows[2 * pair + 1].0));
                sums.store(out.as_mut_ptr().add(2 * pair));
                below |= sums.top_bits() << (2 * pair);
            }
            below
        }
        fn store_narrow(self, to: *mut u16) {
            let halves = vcombine_u32(vqmovn_u64(self.0), vcreate_u32(0));
            let narrow = vreinterpret_u32_u16(vqmovn_u32(halves));
            to.cast::<u32>().write_unaligned(vget_lane_u32::<0>(narrow))
        }
        fn within(from: *const u16, low: u16, span: u16) -> u64 {
            const BITS: [u8; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
            let (low, span, bits) = (vdupq_n_u16(low), vdupq_n_u16(span), vld1_u8(BITS.as_ptr()));
            let mut mask = 0;
            for at in 0..8 {
                let over = vsubq_u16(vld1q_u16(from.add(at * 8)), low);
                let which = vand_u8(vmovn_u16(vcleq_u16(over, span)), bits);
                mask |= u64::from(vaddv_u8(which)) << (at * 8);
            }
            mask
        }
        fn prefetch(from: *const u64) {
            asm!("prfm pldl1keep, [{0}]", in(reg) from, options(readonly, nostack, preserves_flags))
        }
        fn majority(self, b: Self, c: Self) -> Self {
            Self(vbslq_u64(veorq_u64(self.0, b.0), c.0, self.0))
        }
    }
}
