//! Finite-state automata: transitions in one hypervector.
//!
//! Owns how a transition is coded: `action ^ state ^ P next`, with `P` a permutation by one. The automaton is
//! the bundle of its transitions; several from one state by one action are kept side by side. Directions
//! are those of torchhd.
//!
//! Source: Osipov, Kleyko and Legalov, "Associative synthesis of finite state automata model of a
//! controlled object with hyperdimensional computing" (IECON 2017).

use crate::{Bundler, Hypervector, HypervectorView, Kernels, Result};

/// States, actions, and what they lead to.
///
/// ```
/// use warm_kernels::vsa::{Automaton, ItemMemory};
/// let states = ItemMemory::random(2, 4096, 1)?; // locked, open
/// let actions = ItemMemory::random(2, 4096, 2)?; // push, pay
/// let mut turnstile = Automaton::new(4096, 1)?;
/// for (state, action, next) in [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1)] {
///     turnstile.add(states.item(state)?, actions.item(action)?, states.item(next)?)?;
/// }
/// let next = turnstile.next(states.item(0)?, actions.item(1)?)?;
/// assert_eq!(states.cleanup(&next, 0.2)?.map(|found| found.item), Some(1));
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Automaton {
    kernels: Kernels,
    bundler: Bundler,
}

impl Automaton {
    /// An automaton without transitions, of states and actions of `bits` bits; `seed` decides ties.
    ///
    /// # Errors
    /// [`crate::Error::Bits`], [`crate::Error::OutOfMemory`], and those of [`Kernels::active`].
    pub fn new(bits: usize, seed: u64) -> Result<Self> {
        Self::on(Kernels::active()?, bits, seed)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`crate::Error::Bits`], [`crate::Error::OutOfMemory`].
    pub fn on(kernels: Kernels, bits: usize, seed: u64) -> Result<Self> {
        Ok(Self { kernels, bundler: Bundler::on(kernels, bits, seed)? })
    }

    /// How many transitions there are.
    pub fn len(&self) -> usize {
        self.bundler.weight() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a transition.
    ///
    /// # Errors
    /// [`crate::Error::BitsDiffer`], [`crate::Error::Weight`] for too many, [`crate::Error::OutOfMemory`].
    pub fn add<'s, 'a, 'n>(
        &mut self,
        state: impl Into<HypervectorView<'s>>,
        action: impl Into<HypervectorView<'a>>,
        next: impl Into<HypervectorView<'n>>,
    ) -> Result<()> {
        let transition = self.transition(state, action, next)?;
        self.bundler.add(&transition, 1)
    }

    /// Takes a transition out.
    ///
    /// # Errors
    /// Those of [`Bundler::remove`], which can't always tell that it was never added.
    pub fn remove<'s, 'a, 'n>(
        &mut self,
        state: impl Into<HypervectorView<'s>>,
        action: impl Into<HypervectorView<'a>>,
        next: impl Into<HypervectorView<'n>>,
    ) -> Result<()> {
        let transition = self.transition(state, action, next)?;
        self.bundler.remove(&transition, 1)
    }

    /// The state that `action` leads to from `state`, with noise: to be cleaned up.
    ///
    /// # Errors
    /// [`crate::Error::Empty`], [`crate::Error::BitsDiffer`], [`crate::Error::OutOfMemory`].
    pub fn next<'s, 'a>(
        &self,
        state: impl Into<HypervectorView<'s>>,
        action: impl Into<HypervectorView<'a>>,
    ) -> Result<Hypervector> {
        let from = self.kernels.bind(state, action)?;
        self.kernels.permute(&self.kernels.bind(&self.automaton()?, &from)?, -1)
    }

    /// The automaton: the bundle of its transitions.
    ///
    /// # Errors
    /// [`crate::Error::Empty`], [`crate::Error::OutOfMemory`].
    pub fn automaton(&self) -> Result<Hypervector> {
        self.bundler.bundle()
    }

    fn transition<'s, 'a, 'n>(
        &self,
        state: impl Into<HypervectorView<'s>>,
        action: impl Into<HypervectorView<'a>>,
        next: impl Into<HypervectorView<'n>>,
    ) -> Result<Hypervector> {
        let from = self.kernels.bind(state, action)?;
        self.kernels.bind(&from, &self.kernels.permute(next, 1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, vsa::ItemMemory};

    #[test]
    fn an_automaton_runs_as_it_was_told() {
        // Whether a number in binary, highest bit first, is divisible by five: the state is the rest.
        let states = ItemMemory::random(5, 8192, 1).unwrap();
        let digits = ItemMemory::random(2, 8192, 2).unwrap();
        let mut rest = Automaton::new(8192, 3).unwrap();
        for state in 0..5 {
            for digit in 0..2 {
                let next = states.item((state * 2 + digit) % 5).unwrap();
                rest.add(states.item(state).unwrap(), digits.item(digit).unwrap(), next).unwrap();
            }
        }
        assert_eq!(rest.len(), 10);
        for number in 0..64 {
            let mut state = 0;
            for digit in (0..6).rev().map(|at| number >> at & 1) {
                let next = rest.next(states.item(state).unwrap(), digits.item(digit).unwrap()).unwrap();
                state = states.cleanup(&next, 0.15).unwrap().unwrap().item;
            }
            assert_eq!(state, number % 5);
        }
    }

    #[test]
    fn what_was_removed_leads_nowhere_and_what_cannot_be_is_refused() {
        let items = ItemMemory::random(5, 1024, 1).unwrap();
        let item = |at| items.item(at).unwrap();
        let mut made = Automaton::new(1024, 1).unwrap();
        assert_eq!(made.next(item(0), item(1)), Err(Error::Empty));
        made.add(item(0), item(1), item(2)).unwrap();
        assert_eq!(made.next(item(0), item(1)).unwrap().view(), item(2));
        made.add(item(3), item(1), item(4)).unwrap();
        assert_eq!(made.remove(item(0), item(1), item(4)), Err(Error::NotInBundle));
        made.remove(item(0), item(1), item(2)).unwrap();
        assert_eq!(items.cleanup(&made.next(item(0), item(1)).unwrap(), 0.2).unwrap(), None);
        let wide = Hypervector::zeros(64).unwrap();
        assert!(matches!(made.add(item(0), item(1), &wide), Err(Error::BitsDiffer { .. })));
        assert!(matches!(made.add(&wide, &wide, &wide), Err(Error::BitsDiffer { .. })));
        assert!(matches!(made.next(&wide, &wide), Err(Error::BitsDiffer { .. })));
        assert_eq!(made.len(), 1);
    }
}
