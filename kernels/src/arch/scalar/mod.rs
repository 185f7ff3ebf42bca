//! One word at a time: the definition that the other backends are held to.
//!
//! Owns the backend `scalar`. Left to itself the compiler would turn these loops into vector code;
//! an empty `asm!` that claims to change each word keeps them scalar and costs no instruction.
//! On an architecture without such an `asm!` `black_box` stands in.

use crate::arch::vector::Vector;

/// One word.
#[derive(Clone, Copy)]
pub(crate) struct Word(u64);

/// Hides from the compiler what `word` is.
#[inline(always)]
pub(crate) fn opaque(word: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut word = word;
        // SAFETY: no instruction is emitted; the register keeps its value.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) word, options(pure, nomem, nostack, preserves_flags));
        }
        word
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::hint::black_box(word)
}

impl Vector for Word {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        Self(word)
    }
    #[inline(always)]
    unsafe fn first(word: u64) -> Self {
        Self(word)
    }
    #[inline(always)]
    unsafe fn load(from: *const u64) -> Self {
        // SAFETY: valid for one word by the trait's contract.
        Self(opaque(unsafe { from.read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn load_partial(_: *const u64, _: usize) -> Self {
        Self(0)
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u64) {
        // SAFETY: valid for one word by the trait's contract.
        unsafe { to.write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_partial(self, _: *mut u64, _: usize) {}
    #[inline(always)]
    unsafe fn stream(self, to: *mut u64) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.store(to) }
    }
    #[inline(always)]
    unsafe fn fence() {}
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Self(opaque(self.0 & other.0))
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        Self(opaque(self.0 | other.0))
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(opaque(self.0 ^ other.0))
    }
    #[inline(always)]
    unsafe fn and_not(self, other: Self) -> Self {
        Self(opaque(self.0 & !other.0))
    }
    #[inline(always)]
    unsafe fn shl(self, bits: u32) -> Self {
        Self(opaque(self.0.checked_shl(bits).unwrap_or(0)))
    }
    #[inline(always)]
    unsafe fn shr(self, bits: u32) -> Self {
        Self(opaque(self.0.checked_shr(bits).unwrap_or(0)))
    }
    #[inline(always)]
    unsafe fn popcount(self) -> Self {
        Self(opaque(u64::from(opaque(self.0).count_ones())))
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(opaque(self.0.wrapping_add(other.0)))
    }
    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        self.0 == 0
    }
    #[inline(always)]
    unsafe fn top_bits(self) -> u8 {
        (self.0 >> 63) as u8
    }
    #[inline(always)]
    unsafe fn sum(self) -> u64 {
        self.0
    }
    #[inline(always)]
    unsafe fn sum_rows(rows: [Self; 8], out: &mut [u64; 8]) -> u8 {
        *out = rows.map(|row| row.0);
        out.iter().enumerate().fold(0, |mask, (at, row)| mask | ((row >> 63) as u8) << at)
    }
    #[inline(always)]
    unsafe fn prefetch(_: *const u64) {}
}
