//! Which places of the key tree are taken.
//!
//! A memory lies at one place for as long as it has its name, its versions one after another. The least place that
//! is free is given to the next memory, so that the tree stays dense and what is written together lies together.
//! Cheap to clone, like the [names](crate::state::Names) that it goes with.

use rpds::RedBlackTreeSetSync;

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Places {
    /// All that were ever taken lie below.
    end: u64,
    /// Those below that are free.
    free: RedBlackTreeSetSync<u64>,
}

impl Places {
    /// With these taken, which ascend.
    pub(crate) fn taken(places: impl Iterator<Item = u64>) -> Self {
        let mut taken = Self::default();
        for place in places {
            (taken.end..place).for_each(|free| taken.free.insert_mut(free));
            taken.end = place + 1;
        }
        taken
    }

    /// Takes the least place that is free.
    pub(crate) fn take(&mut self) -> u64 {
        match self.free.first().copied() {
            Some(place) => {
                self.free.remove_mut(&place);
                place
            }
            None => {
                self.end += 1;
                self.end - 1
            }
        }
    }

    /// Gives a place back that was taken.
    pub(crate) fn give_back(&mut self, place: u64) {
        self.free.insert_mut(place);
    }
}

#[test]
fn the_least_free_place_is_given_and_none_twice() {
    let mut places = Places::taken([1, 2, 5].into_iter());
    let given: Vec<_> = (0..5).map(|_| places.take()).collect();
    assert_eq!(given, [0, 3, 4, 6, 7]);
    places.give_back(5);
    let before = places.clone();
    assert_eq!((places.take(), places.take()), (5, 8));
    assert_eq!(before.clone().take(), 5, "a clone is of its moment");
}
