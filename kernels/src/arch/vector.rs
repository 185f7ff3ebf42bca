//! The private vector that every algorithm is written over.
//!
//! Owns the smallest set of operations on `LANES` words that the algorithms need. Each method is
//! `#[inline(always)]`, so that its body lands in a `#[target_feature]` wrapper, where the
//! intrinsics inline too. Outside such a wrapper they would be calls.

/// `LANES` words of 64 bits in a register.
///
/// # Safety
/// For every method: the CPU has the instruction set that the type stands for; the caller is, or is
/// inlined into, a function with those target features. Pointers are valid for the lanes that are
/// read or written, at any alignment unless the method says otherwise.
pub(crate) trait Vector: Copy {
    /// Words in a register; it divides 8.
    const LANES: usize;

    /// Every lane `word`.
    unsafe fn splat(word: u64) -> Self;
    /// Lane 0 `word`, the others zero.
    unsafe fn first(word: u64) -> Self;
    /// `LANES` words.
    unsafe fn load(from: *const u64) -> Self;
    /// `n < LANES` words, then zeros; nothing beyond them is touched.
    unsafe fn load_partial(from: *const u64, n: usize) -> Self;
    /// Writes `LANES` words.
    unsafe fn store(self, to: *mut u64);
    /// Writes the first `n < LANES` words; nothing beyond them is touched.
    unsafe fn store_partial(self, to: *mut u64, n: usize);
    /// Writes `LANES` words past the caches, to a multiple of the vector's size. The writer calls
    /// `fence` when it has finished.
    unsafe fn stream(self, to: *mut u64);
    /// Orders streamed stores before what follows.
    unsafe fn fence();

    /// Bitwise and.
    unsafe fn and(self, other: Self) -> Self;
    /// Bitwise or.
    unsafe fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// `self & !other`.
    unsafe fn and_not(self, other: Self) -> Self;
    /// Each lane shifted left; `bits <= 64`, and 64 gives zero.
    unsafe fn shl(self, bits: u32) -> Self;
    /// Each lane shifted right; `bits <= 64`, and 64 gives zero.
    unsafe fn shr(self, bits: u32) -> Self;
    /// Ones in each lane.
    unsafe fn popcount(self) -> Self;
    /// Each lane plus the other's, wrapping.
    unsafe fn add(self, other: Self) -> Self;
    /// Whether every bit is zero.
    unsafe fn is_zero(self) -> bool;
    /// Bit `i` is the top bit of lane `i`.
    unsafe fn top_bits(self) -> u8;
    /// The sum of the lanes, wrapping.
    unsafe fn sum(self) -> u64;
    /// `out[i]` is the wrapping sum of the lanes of `rows[i]`; bit `i` of the result is its top bit.
    unsafe fn sum_rows(rows: [Self; 8], out: &mut [u64; 8]) -> u8;
    /// Writes the lanes as 16-bit numbers; what is larger than those becomes the largest.
    #[inline(always)]
    unsafe fn store_narrow(self, to: *mut u16) {
        let mut lanes = [0; 8];
        // SAFETY: the caller's promise, passed on; there are at most eight lanes.
        unsafe {
            self.store(lanes.as_mut_ptr());
            for (at, lane) in lanes.into_iter().take(Self::LANES).enumerate() {
                *to.add(at) = lane.min(u16::MAX.into()) as u16;
            }
        }
    }
    /// Bit `i` says that number `i` of the 64 at `from` is `low` or up to `span` more.
    #[inline(always)]
    unsafe fn within(from: *const u16, low: u16, span: u16) -> u64 {
        // SAFETY: `from` is valid for 64 numbers.
        (0..64).fold(0, |mask, at| mask | u64::from(unsafe { *from.add(at) }.wrapping_sub(low) <= span) << at)
    }

    /// Asks for the cache line at `from` to be fetched; any address will do.
    unsafe fn prefetch(from: *const u64);

    /// The sum bit of a full adder.
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.xor(b).xor(c) }
    }

    /// The carry bit of a full adder.
    #[inline(always)]
    unsafe fn majority(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.and(b).or(self.xor(b).and(c)) }
    }

    /// Eight rows of `width` words to `width` lines of eight: line `w` holds word `w` of each row.
    /// `from` is valid for `8 * width` words, `to` too.
    #[inline(always)]
    unsafe fn interleave(from: *const u64, width: usize, to: *mut u64) {
        for word in 0..width {
            for row in 0..8 {
                // SAFETY: `row < 8` and `word < width`.
                unsafe { *to.add(word * 8 + row) = *from.add(row * width + word) };
            }
        }
    }

    /// Eight rows of four words, as the four lines of a block, for vectors of eight lanes.
    #[inline(always)]
    unsafe fn four_lines(from: *const u64) -> [Self; 4] {
        let mut lines = [[0; 8]; 4];
        // SAFETY: `from` is valid for 32 words, and so are the lines.
        unsafe {
            Self::interleave(from, 4, lines.as_mut_ptr().cast());
            [
                Self::load(lines[0].as_ptr()),
                Self::load(lines[1].as_ptr()),
                Self::load(lines[2].as_ptr()),
                Self::load(lines[3].as_ptr()),
            ]
        }
    }
}

/// Methods of [`Vector`] whose bodies are intrinsics.
macro_rules! intrinsics {
    ($(fn $name:ident($($arg:tt)*) $(-> $out:ty)? $body:block)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg)*) $(-> $out)? {
                // SAFETY: by the trait's contract the CPU has the instruction set, and pointers
                // are valid for the lanes that are read or written.
                #[allow(unused_unsafe, reason = "some intrinsics are safe in some architectures")]
                unsafe { $body }
            }
        )*
    };
}
pub(crate) use intrinsics;
