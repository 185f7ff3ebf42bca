//! Sequences: place told by permutation.
//!
//! Owns how order is coded. The last element of a sequence is as it is, the one before it is permuted by
//! one bit, and so on. `P` below is [`crate::permute`] by one. Directions are those of torchhd.
//!
//! Source: Kanerva, "Hyperdimensional computing" (Cognitive Computation 1, 2009).

use super::batch::{Batch, same_bits};
use crate::{Bundler, Error, Hypervector, HypervectorView, Kernels, Result};

impl Kernels {
    /// A sequence in which each element can still be found: the bundle of `P^(m-1-i) v[i]`. Undo the
    /// permutation, and the element stands out; see [`BundleSequence`].
    ///
    /// Shapes: `m` hypervectors of `D` bits give one of `D` bits.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::Weight`] for too many, [`Error::OutOfMemory`].
    pub fn bundle_sequence<'a>(
        self,
        inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
        seed: u64,
    ) -> Result<Hypervector> {
        let mut inputs = inputs.into_iter().map(Into::into).peekable();
        let bits = inputs.peek().ok_or(Error::Empty)?.bits();
        let mut bundler = Bundler::on(self, bits, seed)?;
        let mut batch = Batch::new(&mut bundler)?;
        // In the frame of the first element, so that it is the bundle that `BundleSequence` grows.
        let mut at = 0;
        for input in inputs {
            same_bits(bits, input)?;
            batch.add(|out| self.permute_into(input, -at, out))?;
            at += 1;
        }
        batch.finish()?;
        self.permute(&bundler.bundle()?, at - 1)
    }

    /// A sequence as a whole, unlike each of its elements: the binding of `P^(m-1-i) v[i]`. It is one
    /// n-gram, with `n` the length.
    ///
    /// Shapes: `m` hypervectors of `D` bits give one of `D` bits.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn bind_sequence<'a>(
        self,
        inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
    ) -> Result<Hypervector> {
        let mut inputs = inputs.into_iter().map(Into::into);
        let mut out = inputs.next().ok_or(Error::Empty)?.to_owned()?;
        let mut shifted = Hypervector::zeros(out.bits())?;
        for input in inputs {
            self.permute_into(&out, 1, &mut shifted)?;
            self.bind_into(&shifted, input, &mut out)?;
        }
        Ok(out)
    }
}

/// [`Kernels::bundle_sequence`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::bundle_sequence`] and [`Kernels::active`].
pub fn bundle_sequence<'a>(
    inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
    seed: u64,
) -> Result<Hypervector> {
    Kernels::active()?.bundle_sequence(inputs, seed)
}

/// [`Kernels::bind_sequence`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::bind_sequence`] and [`Kernels::active`].
pub fn bind_sequence<'a>(
    inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
) -> Result<Hypervector> {
    Kernels::active()?.bind_sequence(inputs)
}

/// A [`bundle_sequence`] that grows and shrinks at both ends.
///
/// Elements are kept as counters, not as themselves: to take one out, say what it was.
///
/// ```
/// use warm_kernels::vsa::{BundleSequence, ItemMemory};
/// let letters = ItemMemory::random(26, 4096, 1)?;
/// let mut word = BundleSequence::new(4096, 1)?;
/// for letter in "warmth".bytes() {
///     word.append(letters.item(usize::from(letter - b'a'))?)?;
/// }
/// let third = letters.cleanup(&word.element(2)?, 0.2)?.map(|found| found.item);
/// assert_eq!(third, Some(usize::from(b'r' - b'a')));
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BundleSequence {
    kernels: Kernels,
    /// Element `i` is permuted by minus its place here: then appending permutes nothing else.
    bundler: Bundler,
    first: i64,
    len: usize,
}

impl BundleSequence {
    /// An empty sequence of hypervectors of `bits` bits; `seed` decides ties.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`], and those of [`Kernels::active`].
    pub fn new(bits: usize, seed: u64) -> Result<Self> {
        Self::on(Kernels::active()?, bits, seed)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`].
    pub fn on(kernels: Kernels, bits: usize, seed: u64) -> Result<Self> {
        Ok(Self { kernels, bundler: Bundler::on(kernels, bits, seed)?, first: 0, len: 0 })
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element after the last.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Weight`] for too many, [`Error::OutOfMemory`].
    pub fn append<'a>(&mut self, input: impl Into<HypervectorView<'a>>) -> Result<()> {
        let placed = self.placed(input, self.len as i64)?;
        self.bundler.add(&placed, 1)?;
        self.len += 1;
        Ok(())
    }

    /// Adds an element before the first.
    ///
    /// # Errors
    /// Those of [`BundleSequence::append`].
    pub fn prepend<'a>(&mut self, input: impl Into<HypervectorView<'a>>) -> Result<()> {
        let placed = self.placed(input, -1)?;
        self.bundler.add(&placed, 1)?;
        self.first -= 1;
        self.len += 1;
        Ok(())
    }

    /// Takes out the last element, which is `input`.
    ///
    /// # Errors
    /// [`Error::Empty`], and those of [`Bundler::remove`], which can't always tell that it was another.
    pub fn pop<'a>(&mut self, input: impl Into<HypervectorView<'a>>) -> Result<()> {
        let last = self.len.checked_sub(1).ok_or(Error::Empty)?;
        let placed = self.placed(input, last as i64)?;
        self.bundler.remove(&placed, 1)?;
        self.len = last;
        Ok(())
    }

    /// Takes out the first element, which is `input`.
    ///
    /// # Errors
    /// Those of [`BundleSequence::pop`].
    pub fn pop_first<'a>(&mut self, input: impl Into<HypervectorView<'a>>) -> Result<()> {
        let len = self.len.checked_sub(1).ok_or(Error::Empty)?;
        let placed = self.placed(input, 0)?;
        self.bundler.remove(&placed, 1)?;
        self.first += 1;
        self.len = len;
        Ok(())
    }

    /// Puts `new` in the place of element `at`, which is `old`.
    ///
    /// # Errors
    /// [`Error::Row`] beyond the last, and those of [`Bundler::remove`].
    pub fn replace<'a, 'b>(
        &mut self,
        at: usize,
        old: impl Into<HypervectorView<'a>>,
        new: impl Into<HypervectorView<'b>>,
    ) -> Result<()> {
        self.check(at)?;
        let (old, new) = (self.placed(old, at as i64)?, self.placed(new, at as i64)?);
        self.bundler.remove(&old, 1)?;
        self.bundler.add(&new, 1)
    }

    /// What element `at` was, with the others as noise: to be cleaned up.
    ///
    /// # Errors
    /// [`Error::Row`] beyond the last, [`Error::OutOfMemory`].
    pub fn element(&self, at: usize) -> Result<Hypervector> {
        self.check(at)?;
        self.kernels.permute(&self.bundler.bundle()?, self.first + at as i64)
    }

    /// The sequence: [`bundle_sequence`] of its elements. It is so to the bit where it has only been
    /// appended to; else bits that tie may fall the other way.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::OutOfMemory`].
    pub fn sequence(&self) -> Result<Hypervector> {
        self.kernels.permute(&self.bundler.bundle()?, self.first + self.len as i64 - 1)
    }

    fn placed<'a>(&self, input: impl Into<HypervectorView<'a>>, at: i64) -> Result<Hypervector> {
        let input = input.into();
        same_bits(self.bundler.bits(), input)?;
        self.kernels.permute(input, -(self.first + at))
    }

    fn check(&self, at: usize) -> Result<()> {
        if at < self.len { Ok(()) } else { Err(Error::Row { row: at, rows: self.len }) }
    }
}

/// A [`bind_sequence`] that grows and shrinks at both ends.
///
/// To take an element out, say what it was; nothing can tell that it was another.
///
/// ```
/// use warm_kernels::vsa::{BindSequence, ItemMemory};
/// let items = ItemMemory::random(3, 1024, 1)?;
/// let mut window = BindSequence::new(1024)?;
/// window.append(items.item(0)?)?;
/// window.append(items.item(1)?)?;
/// window.pop_first(items.item(0)?)?;
/// assert_eq!(window.sequence().view(), items.item(1)?);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BindSequence {
    kernels: Kernels,
    sequence: Hypervector,
    len: usize,
}

impl BindSequence {
    /// An empty sequence of hypervectors of `bits` bits.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`], and those of [`Kernels::active`].
    pub fn new(bits: usize) -> Result<Self> {
        Self::on(Kernels::active()?, bits)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`].
    pub fn on(kernels: Kernels, bits: usize) -> Result<Self> {
        Ok(Self { kernels, sequence: Hypervector::zeros(bits)?, len: 0 })
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The sequence; all zeros, the identity of binding, where it is empty.
    pub fn sequence(&self) -> &Hypervector {
        &self.sequence
    }

    /// Adds an element after the last.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn append<'a>(&mut self, input: impl Into<HypervectorView<'a>>) -> Result<()> {
        self.sequence = self.kernels.bind(&self.kernels.permute(&self.sequence, 1)?, input)?;
        self.len += 1;
        Ok(())
    }

    /// Adds an element before the first.
    ///
    /// # Errors
    /// Those of [`BindSequence::append`].
    pub fn prepend<'a>(&mut self, input: impl Into<HypervectorView<'a>>) -> Result<()> {
        self.bind_at(input, self.len)?;
        self.len += 1;
        Ok(())
    }

    /// Takes out the last element, which is `input`.
    ///
    /// # Errors
    /// [`Error::Empty`], and those of [`BindSequence::append`].
    pub fn pop<'a>(&mut self, input: impl Into<HypervectorView<'a>>) -> Result<()> {
        let len = self.len.checked_sub(1).ok_or(Error::Empty)?;
        let rest = self.kernels.bind(&self.sequence, input)?;
        self.sequence = self.kernels.permute(&rest, -1)?;
        self.len = len;
        Ok(())
    }

    /// Takes out the first element, which is `input`.
    ///
    /// # Errors
    /// Those of [`BindSequence::pop`].
    pub fn pop_first<'a>(&mut self, input: impl Into<HypervectorView<'a>>) -> Result<()> {
        let len = self.len.checked_sub(1).ok_or(Error::Empty)?;
        self.bind_at(input, len)?;
        self.len = len;
        Ok(())
    }

    /// Puts `new` in the place of element `at`, which is `old`.
    ///
    /// # Errors
    /// [`Error::Row`] beyond the last, and those of [`BindSequence::append`].
    pub fn replace<'a, 'b>(
        &mut self,
        at: usize,
        old: impl Into<HypervectorView<'a>>,
        new: impl Into<HypervectorView<'b>>,
    ) -> Result<()> {
        if at >= self.len {
            return Err(Error::Row { row: at, rows: self.len });
        }
        let change = self.kernels.bind(old, new)?;
        self.bind_at(&change, self.len - 1 - at)
    }

    fn bind_at<'a>(&mut self, input: impl Into<HypervectorView<'a>>, place: usize) -> Result<()> {
        let placed = self.kernels.permute(input, place as i64)?;
        self.sequence = self.kernels.bind(&self.sequence, &placed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hamming, negative, similarity, vsa::ItemMemory};

    const BITS: usize = 4096;
    const NOISE: f64 = 5.0 / 64.0;

    fn letters(word: &str, items: &ItemMemory) -> Vec<Hypervector> {
        word.bytes().map(|b| items.item(usize::from(b - b'a')).unwrap().to_owned().unwrap()).collect()
    }

    #[test]
    fn sequences_are_what_their_formulas_say() {
        let items = ItemMemory::random(26, BITS, 1).unwrap();
        let word = letters("abcde", &items);
        let placed: Vec<_> =
            word.iter().enumerate().map(|(at, v)| crate::permute(v, 4 - at as i64).unwrap()).collect();
        assert_eq!(bind_sequence(&word).unwrap(), crate::bind_many(&placed).unwrap());
        // Five elements cannot tie, so the seed makes no difference.
        assert_eq!(bundle_sequence(&word, 1).unwrap(), crate::bundle(&placed, 2).unwrap());
    }

    #[test]
    fn order_and_repetition_matter() {
        let items = ItemMemory::random(26, BITS, 2).unwrap();
        let make = |word: &str, seed| bundle_sequence(&letters(word, &items), seed).unwrap();
        let alike = |a: &str, b: &str| similarity(&make(a, 1), &make(b, 2)).unwrap();
        // Four of five elements in place; one; none, though the letters are the same.
        assert!(alike("warmb", "warmc") > 0.4);
        assert!(alike("abcde", "edcba") < 0.4 && alike("abcde", "edcba") > 0.05, "c stays in place");
        assert!(alike("abcd", "bcda").abs() < NOISE);
        assert!(alike("abab", "baba").abs() < NOISE);
        let whole = |word: &str| bind_sequence(&letters(word, &items)).unwrap();
        for (a, b) in [("warmb", "warmc"), ("abc", "cba"), ("aa", "a"), ("aaa", "aaaa")] {
            assert!(similarity(&whole(a), &whole(b)).unwrap().abs() < NOISE, "{a} {b}");
        }
    }

    #[test]
    fn every_element_of_a_bundled_sequence_is_recovered() {
        let items = ItemMemory::random(26, BITS, 3).unwrap();
        for word in ["a", "at", "warm", "memory", "hypervector", "thequickbrownfox"] {
            let mut sequence = BundleSequence::new(BITS, 9).unwrap();
            letters(word, &items).iter().for_each(|letter| sequence.append(letter).unwrap());
            assert_eq!(sequence.sequence().unwrap(), bundle_sequence(&letters(word, &items), 9).unwrap());
            let read: String = (0..word.len())
                .map(|at| items.cleanup(&sequence.element(at).unwrap(), 0.1).unwrap().unwrap().item)
                .map(|item| char::from(b'a' + item as u8))
                .collect();
            assert_eq!(read, word);
        }
    }

    #[test]
    fn sequences_grow_and_shrink_at_both_ends() {
        let items = ItemMemory::random(26, BITS, 4).unwrap();
        let [w, a, r, m, x] = ["w", "a", "r", "m", "x"].map(|l| letters(l, &items).remove(0));
        let mut bundled = BundleSequence::new(BITS, 5).unwrap();
        let mut bound = BindSequence::new(BITS).unwrap();
        bundled.append(&x).and_then(|()| bundled.append(&r)).unwrap();
        bundled.prepend(&a).and_then(|()| bundled.prepend(&w)).and_then(|()| bundled.append(&m)).unwrap();
        bundled.append(&x).and_then(|()| bundled.pop(&x)).unwrap();
        bundled.pop_first(&w).unwrap();
        bundled.replace(1, &x, &m).unwrap();
        bound.append(&x).and_then(|()| bound.append(&r)).unwrap();
        bound.prepend(&a).and_then(|()| bound.prepend(&w)).and_then(|()| bound.append(&m)).unwrap();
        bound.append(&x).and_then(|()| bound.pop(&x)).unwrap();
        bound.pop_first(&w).unwrap();
        bound.replace(1, &x, &m).unwrap();
        assert_eq!((bundled.len(), bound.len()), (4, 4));
        assert_eq!(*bound.sequence(), bind_sequence([&a, &m, &r, &m]).unwrap());
        let again = bundle_sequence([&a, &m, &r, &m], 5).unwrap();
        // Four elements tie in three bits of eight; half of those may fall the other way.
        let alike = similarity(&bundled.sequence().unwrap(), &again).unwrap();
        assert!((alike - 0.625).abs() < NOISE, "{alike}");
        for (at, letter) in [&a, &m, &r, &m].into_iter().enumerate() {
            assert!(similarity(&bundled.element(at).unwrap(), letter).unwrap() > 0.3);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_and_changes_nothing() {
        let items = ItemMemory::random(2, 64, 1).unwrap();
        let (a, b) = (items.item(0).unwrap(), items.item(1).unwrap());
        let wide = Hypervector::zeros(128).unwrap();
        let differ = Error::BitsDiffer { left: 64, right: 128 };
        let twice = (Err(differ.clone()), Err(differ.clone()));
        let none: [HypervectorView<'_>; 0] = [];
        assert_eq!((bundle_sequence(none, 1), bind_sequence(none)), (Err(Error::Empty), Err(Error::Empty)));
        assert_eq!(bundle_sequence([a, wide.view()], 1), Err(differ.clone()));
        assert_eq!(bind_sequence([a, wide.view()]), Err(differ.clone()));
        let mut bundled = BundleSequence::new(64, 1).unwrap();
        assert_eq!(bundled.sequence(), Err(Error::Empty));
        assert_eq!((bundled.pop(a), bundled.pop_first(a)), (Err(Error::Empty), Err(Error::Empty)));
        bundled.append(a).unwrap();
        assert_eq!((bundled.append(&wide), bundled.prepend(&wide)), twice.clone());
        assert_eq!(bundled.pop(&negative(a).unwrap()), Err(Error::NotInBundle));
        assert_eq!(bundled.replace(0, b, a), Err(Error::NotInBundle));
        assert_eq!(bundled.replace(0, a, &wide), Err(differ.clone()));
        assert_eq!(bundled.replace(1, a, b), Err(Error::Row { row: 1, rows: 1 }));
        assert_eq!(bundled.element(1), Err(Error::Row { row: 1, rows: 1 }));
        assert_eq!((bundled.len(), bundled.sequence().unwrap().view()), (1, a));
        let mut bound = BindSequence::new(64).unwrap();
        assert_eq!((bound.pop(a), bound.pop_first(a)), (Err(Error::Empty), Err(Error::Empty)));
        bound.append(a).unwrap();
        assert_eq!((bound.append(&wide), bound.prepend(&wide)), twice);
        assert_eq!(bound.replace(1, a, b), Err(Error::Row { row: 1, rows: 1 }));
        assert_eq!((bound.len(), bound.is_empty()), (1, false));
        assert_eq!(hamming(bound.sequence(), a), Ok(0));
    }
}
