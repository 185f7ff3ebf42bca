//! Graphs: edges in one hypervector.
//!
//! Owns how an edge is coded: `a ^ b` where it has no direction, `a ^ P b` where it goes from `a` to `b`,
//! with `P` a permutation by one. A graph is the bundle of its edges. Directions are those of torchhd.
//!
//! In binary spatter codes `a ^ a` is zero for every `a`: the loops of an undirected graph can't be told
//! apart. Those of a directed one can.
//!
//! Source: Heddes, Nunes, Vergés, Kleyko, Abraham, Givargis, Nicolau and Veidenbaum, "Torchhd" (JMLR 24,
//! 2023); Gayler and Levy, "A distributed basis for analogical mapping" (Analogy 2009).

use super::batch::{Batch, same_bits};
use crate::{Bundler, Error, Hypervector, HypervectorView, Kernels, Result};

/// Whether edges have a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edges {
    /// An edge is a pair of nodes in no order.
    Undirected,
    /// An edge goes from its first node to its second.
    Directed,
}

impl Edges {
    /// By how many bits the second node of an edge is permuted.
    fn shift(self) -> i64 {
        match self {
            Self::Undirected => 0,
            Self::Directed => 1,
        }
    }
}

impl Kernels {
    /// The graph that has these edges, each a pair of nodes.
    ///
    /// Shapes: `n` pairs of hypervectors of `D` bits give one of `D` bits.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::Weight`] for too many, [`Error::OutOfMemory`].
    pub fn graph<'a, 'b>(
        self,
        pairs: impl IntoIterator<Item = (impl Into<HypervectorView<'a>>, impl Into<HypervectorView<'b>>)>,
        edges: Edges,
        seed: u64,
    ) -> Result<Hypervector> {
        let mut pairs = pairs.into_iter().map(|(a, b)| (a.into(), b.into())).peekable();
        let bits = pairs.peek().ok_or(Error::Empty)?.0.bits();
        let mut bundler = Bundler::on(self, bits, seed)?;
        let mut shifted = Hypervector::zeros(bits)?;
        let mut batch = Batch::new(&mut bundler)?;
        for (a, b) in pairs {
            same_bits(bits, a)?;
            same_bits(bits, b)?;
            self.permute_into(b, edges.shift(), &mut shifted)?;
            batch.add(|out| self.bind_into(a, &shifted, out))?;
        }
        batch.finish()?;
        bundler.bundle()
    }
}

/// [`Kernels::graph`] on the active kernels.
///
/// # Errors
/// Those of [`Kernels::graph`] and [`Kernels::active`].
pub fn graph<'a, 'b>(
    pairs: impl IntoIterator<Item = (impl Into<HypervectorView<'a>>, impl Into<HypervectorView<'b>>)>,
    edges: Edges,
    seed: u64,
) -> Result<Hypervector> {
    Kernels::active()?.graph(pairs, edges, seed)
}

/// A [`graph`] that grows and shrinks.
///
/// ```
/// use warm_kernels::vsa::{Edges, Graph, ItemMemory};
/// let cities = ItemMemory::random(5, 4096, 1)?;
/// let mut roads = Graph::new(4096, Edges::Directed, 1)?;
/// for (from, to) in [(0, 1), (1, 2), (3, 1)] {
///     roads.add_edge(cities.item(from)?, cities.item(to)?)?;
/// }
/// let next = cities.cleanup(&roads.successors(cities.item(1)?)?, 0.2)?;
/// assert_eq!(next.map(|found| found.item), Some(2));
/// assert!(roads.contains(cities.item(3)?, cities.item(1)?)? > 0.3);
/// assert!(roads.contains(cities.item(1)?, cities.item(3)?)? < 0.1);
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Graph {
    kernels: Kernels,
    bundler: Bundler,
    edges: Edges,
}

impl Graph {
    /// A graph without edges, of nodes of `bits` bits; `seed` decides ties.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`], and those of [`Kernels::active`].
    pub fn new(bits: usize, edges: Edges, seed: u64) -> Result<Self> {
        Self::on(Kernels::active()?, bits, edges, seed)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`Error::Bits`], [`Error::OutOfMemory`].
    pub fn on(kernels: Kernels, bits: usize, edges: Edges, seed: u64) -> Result<Self> {
        Ok(Self { kernels, bundler: Bundler::on(kernels, bits, seed)?, edges })
    }

    /// How many edges there are.
    pub fn len(&self) -> usize {
        self.bundler.weight() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An edge by itself.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn edge<'a, 'b>(
        &self,
        a: impl Into<HypervectorView<'a>>,
        b: impl Into<HypervectorView<'b>>,
    ) -> Result<Hypervector> {
        self.kernels.bind(a, &self.kernels.permute(b, self.edges.shift())?)
    }

    /// Adds an edge.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::Weight`] for too many, [`Error::OutOfMemory`].
    pub fn add_edge<'a, 'b>(
        &mut self,
        a: impl Into<HypervectorView<'a>>,
        b: impl Into<HypervectorView<'b>>,
    ) -> Result<()> {
        let edge = self.edge(a, b)?;
        self.bundler.add(&edge, 1)
    }

    /// Takes an edge out.
    ///
    /// # Errors
    /// Those of [`Bundler::remove`], which can't always tell that the edge was never added.
    pub fn remove_edge<'a, 'b>(
        &mut self,
        a: impl Into<HypervectorView<'a>>,
        b: impl Into<HypervectorView<'b>>,
    ) -> Result<()> {
        let edge = self.edge(a, b)?;
        self.bundler.remove(&edge, 1)
    }

    /// The similarity, -1 to 1, of the graph to an edge: about 0 where the graph doesn't have it, about
    /// that of a bundle to one of its inputs where it does. The graph is made anew for each question; for
    /// many, keep [`Graph::graph`] and compare it with [`Graph::edge`].
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn contains<'a, 'b>(
        &self,
        a: impl Into<HypervectorView<'a>>,
        b: impl Into<HypervectorView<'b>>,
    ) -> Result<f64> {
        self.kernels.similarity(&self.graph()?, &self.edge(a, b)?)
    }

    /// The bundle of the nodes that edges lead to from `node`, with noise; of all its neighbours in an
    /// undirected graph.
    ///
    /// # Errors
    /// Those of [`Graph::contains`].
    pub fn successors<'a>(&self, node: impl Into<HypervectorView<'a>>) -> Result<Hypervector> {
        self.kernels.permute(&self.kernels.bind(&self.graph()?, node)?, -self.edges.shift())
    }

    /// The bundle of the nodes that edges lead from to `node`, with noise; of all its neighbours in an
    /// undirected graph.
    ///
    /// # Errors
    /// Those of [`Graph::contains`].
    pub fn predecessors<'a>(&self, node: impl Into<HypervectorView<'a>>) -> Result<Hypervector> {
        self.kernels.bind(&self.graph()?, &self.kernels.permute(node, self.edges.shift())?)
    }

    /// The graph: [`graph`] of its edges, to the bit.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::OutOfMemory`].
    pub fn graph(&self) -> Result<Hypervector> {
        self.bundler.bundle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsa::ItemMemory;

    const BITS: usize = 8192;
    /// Six standard deviations and what three edges that form a path lend to the one that would close it: a
    /// majority is a little like the products of three of its inputs.
    const NOISE: f64 = 7.5 / 90.5;

    fn ring(nodes: usize) -> Vec<(usize, usize)> {
        (0..nodes).map(|at| (at, (at + 1) % nodes)).chain([(0, 5), (7, 3)]).collect()
    }

    #[test]
    fn edges_are_recovered_and_told_from_all_others() {
        let items = ItemMemory::random(12, BITS, 1).unwrap();
        let item = |at| items.item(at).unwrap();
        for edges in [Edges::Undirected, Edges::Directed] {
            let pairs = ring(12);
            let mut made = Graph::new(BITS, edges, 2).unwrap();
            pairs.iter().for_each(|&(a, b)| made.add_edge(item(a), item(b)).unwrap());
            let at_once = graph(pairs.iter().map(|&(a, b)| (item(a), item(b))), edges, 2).unwrap();
            assert_eq!((made.len(), made.graph().unwrap()), (14, at_once));
            for a in 0..12 {
                for b in (0..12).filter(|&b| b != a || edges == Edges::Directed) {
                    let there =
                        pairs.contains(&(a, b)) || edges == Edges::Undirected && pairs.contains(&(b, a));
                    let alike = made.contains(item(a), item(b)).unwrap();
                    assert!(if there { alike > 0.15 } else { alike.abs() < NOISE }, "{edges:?} {a} {b}");
                }
                let near = |found: Hypervector| {
                    let mut found: Vec<usize> =
                        (0..12).filter(|&b| crate::similarity(&found, item(b)).unwrap() > 0.15).collect();
                    found.sort_unstable();
                    found
                };
                let next: Vec<usize> = (0..12).filter(|&b| pairs.contains(&(a, b))).collect();
                let last: Vec<usize> = (0..12).filter(|&b| pairs.contains(&(b, a))).collect();
                let (successors, predecessors) =
                    (near(made.successors(item(a)).unwrap()), near(made.predecessors(item(a)).unwrap()));
                if edges == Edges::Directed {
                    assert_eq!((successors, predecessors), (next, last));
                } else {
                    let mut all = [next, last].concat();
                    all.sort_unstable();
                    assert_eq!((&successors, &predecessors), (&all, &all));
                }
            }
        }
    }

    #[test]
    fn a_removed_edge_is_gone() {
        let items = ItemMemory::random(4, BITS, 3).unwrap();
        let item = |at| items.item(at).unwrap();
        let mut made = Graph::new(BITS, Edges::Directed, 2).unwrap();
        made.add_edge(item(0), item(1)).unwrap();
        let before = made.graph().unwrap();
        made.add_edge(item(2), item(2)).unwrap();
        assert!(made.contains(item(2), item(2)).unwrap() > 0.4);
        assert!(made.contains(item(3), item(3)).unwrap().abs() < NOISE, "loops are told apart");
        made.remove_edge(item(2), item(2)).unwrap();
        assert_eq!(made.graph().unwrap(), before);
        assert_eq!(made.remove_edge(item(1), item(0)), Err(Error::NotInBundle));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let (a, b) = (Hypervector::zeros(64).unwrap(), Hypervector::zeros(128).unwrap());
        let none: [(&Hypervector, &Hypervector); 0] = [];
        let differ = Error::BitsDiffer { left: 64, right: 128 };
        for edges in [Edges::Undirected, Edges::Directed] {
            assert_eq!(graph(none, edges, 1), Err(Error::Empty));
            assert_eq!(graph([(&a, &b)], edges, 1), Err(differ.clone()));
            assert_eq!(graph([(&a, &a), (&b, &a)], edges, 1), Err(differ.clone()));
            let mut made = Graph::new(64, edges, 1).unwrap();
            assert_eq!((made.graph(), made.successors(&a)), (Err(Error::Empty), Err(Error::Empty)));
            assert_eq!(
                (made.contains(&a, &a), made.predecessors(&a)),
                (Err(Error::Empty), Err(Error::Empty))
            );
            assert_eq!(made.add_edge(&b, &b), Err(differ.clone()));
            made.add_edge(&a, &a).unwrap();
            assert_eq!(made.successors(&b), Err(differ.clone()));
            assert_eq!(made.predecessors(&b), Err(differ.clone()));
            assert_eq!(made.len(), 1);
        }
    }
}
