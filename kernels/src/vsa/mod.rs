//! The toolkit of vector-symbolic architectures, for binary spatter codes.
//!
//! Owns what is built over the operations: where hypervectors come from ([`ItemMemory`]), how
//! structures become one ([`hash_table`], [`bundle_sequence`], [`ngrams`], [`graph`], ...), and how they
//! are taken apart ([`cleanup`], [`Centroid`], [`Resonator`]). Each function is a method of
//! [`crate::Kernels`] and a free function that runs on [`crate::Kernels::active`].
//!
//! | Here | In torchhd, for `vsa="BSC"` |
//! |---|---|
//! | [`ItemMemory`]: `random`, `level`, `level_spans`, `thermometer`, `circular` | `Random`, `Level`, `Thermometer`, `Circular`, and the functions of those names |
//! | [`value_to_item`], [`item_to_value`], [`angle_to_item`], [`item_to_angle`] | `value_to_index`, `index_to_value`, what `Circular` does with an angle |
//! | [`crate::Hypervector::zeros`] | `identity` |
//! | [`crate::bind`], [`multibind`], [`inverse`] | `bind`, `multibind`, `inverse` |
//! | [`crate::bundle`], [`multiset`], [`crate::Bundler`], [`crate::negative`] | `bundle`, `multiset`, `structures.Multiset`, `negative` |
//! | [`random_select`], [`cross_product`] | `multirandsel`, `cross_product` |
//! | [`crate::permute`], [`crate::similarity`], [`crate::hamming`] | `permute`, `cosine_similarity`, `hamming_similarity` |
//! | [`bundle_sequence`], [`bind_sequence`], [`BundleSequence`], [`BindSequence`] | the same |
//! | [`ngrams`] | `ngrams`, `Multiset.from_ngrams` |
//! | [`hash_table`], [`HashTable`] | the same |
//! | [`graph`], [`Graph`] | the same |
//! | [`Automaton`], [`Tree`] | `FiniteStateAutomata`, `Tree` |
//! | [`cleanup`], [`Memory`] | `cleanup`, `structures.Memory` |
//! | [`Centroid`], [`CentroidModel`] | `models.Centroid`; [`Centroid::correct`] is what `AdaptHD` does |
//! | [`Resonator`] | `resonator`, which torchhd has for MAP only |
//!
//! There is no `empty`: in binary spatter codes nothing is neutral to bundling but no input at all. A
//! bundle of nothing is [`crate::Error::Empty`].
//!
//! # Ties
//!
//! A bundle of an even number ties in some of its bits, in half of them for two inputs. Its seed and a
//! digest of what it holds decide these: the same inputs with the same weights and seed always give the same
//! bundle, in any order and on any machine, and structures with different contents break their ties
//! independently, so that one seed does for all of them. Two that are unrelated otherwise have a similarity of
//! about zero.
//!
//! # What is the dollar of Mexico?
//!
//! Kanerva's analogy ("What we mean when we say 'What's the dollar of Mexico?'", AAAI Fall Symposium
//! 2010). Two countries are records with the same roles. Their product maps one to the other, since a role
//! bound with itself vanishes; what the dollar is in the one, that is the peso in the other.
//!
//! ```
//! use warm_kernels::{bind, vsa::{ItemMemory, hash_table}};
//!
//! let names = [
//!     "name", "capital", "currency", // roles
//!     "usa", "washington", "dollar", "mexico", "mexico city", "peso", // fillers
//! ];
//! let items = ItemMemory::random(names.len(), 8192, 2010)?;
//! let of = |name: &str| items.item(names.iter().position(|known| *known == name).unwrap_or(usize::MAX));
//!
//! let country = |name, capital, currency| {
//!     let pairs = [
//!         (of("name")?, of(name)?),
//!         (of("capital")?, of(capital)?),
//!         (of("currency")?, of(currency)?),
//!     ];
//!     hash_table(pairs, 1)
//! };
//! let usa = country("usa", "washington", "dollar")?;
//! let mexico = country("mexico", "mexico city", "peso")?;
//!
//! // A record answers what fills a role.
//! let currency = items.cleanup(&bind(&mexico, of("currency")?)?, 0.2)?;
//! assert_eq!(currency.map(|found| names[found.item]), Some("peso"));
//!
//! // The map between the two answers without naming the role.
//! let usa_to_mexico = bind(&usa, &mexico)?;
//! for (here, there) in [("dollar", "peso"), ("washington", "mexico city"), ("usa", "mexico")] {
//!     let found = items.cleanup(&bind(of(here)?, &usa_to_mexico)?, 0.15)?;
//!     assert_eq!(found.map(|found| names[found.item]), Some(there));
//! }
//! # Ok::<(), warm_kernels::Error>(())
//! ```

mod automaton;
mod batch;
mod classifier;
mod cleanup;
mod graph;
mod item_memory;
mod ngrams;
mod record;
mod resonator;
mod scale;
mod sequence;
mod set;
mod streams;
mod tree;

pub use crate::{bind_many as multibind, bundle as multiset};
pub use automaton::Automaton;
pub use classifier::{Centroid, CentroidModel, Prediction};
pub use cleanup::{Match, Memory, cleanup};
pub use graph::{Edges, Graph, graph};
pub use item_memory::ItemMemory;
pub use ngrams::ngrams;
pub use record::{HashTable, hash_table};
pub use resonator::{Factors, Resonator, Step};
pub use scale::{angle_to_item, item_to_angle, item_to_value, value_to_item};
pub use sequence::{BindSequence, BundleSequence, bind_sequence, bundle_sequence};
pub use set::{cross_product, inverse, random_select};
pub use tree::{Side, Tree};

#[cfg(test)]
mod tests {
    use super::{Side::*, *};
    use crate::{Hypervector, HypervectorView, Isa, Kernels, Result, bind_many};

    /// One of everything, on these kernels.
    fn everything(kernels: Kernels, bits: usize) -> Result<(Vec<Hypervector>, Factors, Prediction)> {
        let items = ItemMemory::random(20, bits, 1)?;
        let rows: Vec<HypervectorView<'_>> = items.codes().iter().collect();
        let pairs = || rows[..9].iter().copied().zip(rows[9..18].iter().copied());
        let mut bundled = BundleSequence::on(kernels, bits, 1)?;
        let mut bound = BindSequence::on(kernels, bits)?;
        for row in &rows[..4] {
            bundled.append(*row)?;
            bundled.prepend(*row)?;
            bound.append(*row)?;
            bound.prepend(*row)?;
        }
        let mut table = HashTable::on(kernels, bits, 1)?;
        let mut roads = Graph::on(kernels, bits, Edges::Directed, 1)?;
        for (a, b) in pairs() {
            table.add(a, b)?;
            roads.add_edge(a, b)?;
        }
        let mut automaton = Automaton::on(kernels, bits, 1)?;
        automaton.add(rows[0], rows[1], rows[2])?;
        automaton.add(rows[2], rows[1], rows[0])?;
        let mut tree = Tree::on(kernels, bits, 1)?;
        tree.add(&[Left, Right], rows[0])?;
        tree.add(&[Left, Right, Right], rows[1])?;
        let mut classes = Centroid::on(kernels, 2, bits, 1)?;
        classes.add_all(0, &rows[..10])?;
        classes.add_ngrams(1, rows.iter().copied(), 4)?;
        let made = vec![
            kernels.ngrams(rows.iter().copied(), 3, 1)?,
            kernels.bundle_sequence(rows.iter().copied(), 1)?,
            kernels.bind_sequence(rows.iter().copied())?,
            kernels.cross_product(rows[..4].iter().copied(), rows[4..].iter().copied(), 1)?,
            kernels.hash_table(pairs(), 1)?,
            kernels.graph(pairs(), Edges::Undirected, 1)?,
            bundled.element(5)?,
            bound.sequence().clone(),
            table.get(rows[3])?,
            roads.successors(rows[2])?,
            automaton.next(rows[0], rows[1])?,
            tree.get(&[Left, Right])?,
            classes.centroid(1)?,
        ];
        let domains = [4, 5, 6].map(|seed| ItemMemory::random(6, bits, seed));
        let [a, b, c] = domains;
        let (a, b, c) = (a?, b?, c?);
        let product = bind_many([a.item(1)?, b.item(2)?, c.item(3)?])?;
        let resonator = Resonator::on(kernels, &[a.codes(), b.codes(), c.codes()], 1)?;
        Ok((made, resonator.factor(&product)?, classes.model()?.predict(rows[0])?))
    }

    #[test]
    fn every_backend_gives_the_same() {
        for bits in [64, 448, 1024] {
            let expected = everything(Kernels::new(Isa::Scalar).unwrap(), bits).unwrap();
            for isa in Isa::ALL {
                match Kernels::new(isa) {
                    Ok(kernels) => assert_eq!(everything(kernels, bits).unwrap(), expected, "{isa}"),
                    Err(_) => println!("skipped: {isa} is not available"),
                }
            }
        }
    }
}
