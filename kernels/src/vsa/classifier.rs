//! The centroid classifier: a class is the bundle of its examples.
//!
//! Owns the bundles, one a class, and the prediction by the nearest of them. Learning is counting, so
//! examples can be taken back and the result is what it would have been without them.
//!
//! Sources: Kanerva, "Hyperdimensional computing" (2009), prototypes; Joshi, Halseth and Kanerva,
//! "Language geometry using random indexing" (Quantum Interaction 2016), languages; Imani et al.,
//! "AdaptHD" (BioCAS 2019), correction.

use super::{cleanup::matched, streams};
use crate::{
    Bundler, Codes, Error, Hypervector, HypervectorView, Kernels, Neighbour, Result, Rng, Search, Threads,
};

/// Classes while they are learnt. [`Centroid::model`] makes what predicts.
///
/// A classifier of languages by their letter trigrams, after Joshi, Halseth and Kanerva (2016):
///
/// ```
/// use warm_kernels::vsa::{Centroid, ItemMemory, ngrams};
///
/// let english = [
///     "the old harbour was quiet when the boats came home with the morning tide",
///     "she put the kettle on the stove and waited for the water to boil",
///     "nobody knew where the path through the woods would lead them",
///     "there is nothing like the smell of fresh bread in the morning",
/// ];
/// let german = [
///     "der alte hafen lag still als die boote mit der flut nach hause kamen",
///     "sie stellte den kessel auf den herd und wartete bis das wasser kochte",
///     "niemand wusste wohin der weg durch den wald sie noch bringen sollte",
///     "es gibt nichts schoeneres als den duft von frischem brot am morgen",
/// ];
/// let spanish = [
///     "el viejo puerto estaba tranquilo cuando los barcos volvieron con la marea",
///     "ella puso la olla en el fuego y espero hasta que hirvio el agua",
///     "nadie sabia adonde los llevaria el camino que cruzaba el bosque",
///     "no hay nada como el olor del pan recien hecho por la manana",
/// ];
///
/// // A random hypervector for each letter and the space; a text is a sequence of them.
/// let bits = 8192;
/// let letters = ItemMemory::random(27, bits, 1)?;
/// let spell = |text: &str| {
///     text.bytes()
///         .map(|byte| letters.item(if byte == b' ' { 26 } else { usize::from(byte - b'a') }))
///         .collect::<Result<Vec<_>, _>>()
/// };
///
/// let mut languages = Centroid::new(3, bits, 1)?;
/// for (language, texts) in [english, german, spanish].iter().enumerate() {
///     for text in texts {
///         languages.add_ngrams(language, spell(text)?, 3)?;
///     }
/// }
///
/// let model = languages.model()?;
/// for (text, language) in [
///     ("they were waiting for the others in the kitchen", 0),
///     ("wir haben den ganzen abend am wasser gesessen", 1),
///     ("los amigos de la casa vieron pasar el barco", 2),
/// ] {
///     let found = model.predict(&ngrams(spell(text)?, 3, 1)?)?;
///     assert_eq!(found.class, language, "{text}");
///     assert!(found.margin > 0.0);
/// }
/// # Ok::<(), warm_kernels::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Centroid {
    kernels: Kernels,
    bits: usize,
    classes: Vec<Bundler>,
}

impl Centroid {
    /// `classes` classes without examples, of hypervectors of `bits` bits; `seed` decides ties, for each
    /// class by itself.
    ///
    /// # Errors
    /// [`Error::Empty`] for no classes, [`Error::Bits`], [`Error::OutOfMemory`], and those of
    /// [`Kernels::active`].
    pub fn new(classes: usize, bits: usize, seed: u64) -> Result<Self> {
        Self::on(Kernels::active()?, classes, bits, seed)
    }

    /// The same on the kernels of your choice.
    ///
    /// # Errors
    /// [`Error::Empty`] for no classes, [`Error::Bits`], [`Error::OutOfMemory`].
    pub fn on(kernels: Kernels, classes: usize, bits: usize, seed: u64) -> Result<Self> {
        if classes == 0 {
            return Err(Error::Empty);
        }
        // A first one, so that a dimension that is none costs nothing.
        let bundler =
            |class: usize| Bundler::on(kernels, bits, Rng::stream(seed, streams::class(class)).next_u64());
        let first = bundler(0)?;
        let mut out = Vec::new();
        out.try_reserve_exact(classes)
            .map_err(|_| Error::OutOfMemory(classes.saturating_mul(size_of::<Bundler>())))?;
        out.push(first);
        for class in 1..classes {
            out.push(bundler(class)?);
        }
        Ok(Self { kernels, bits, classes: out })
    }

    /// The dimension in bits.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// The sum of the sizes of the weights of a class: the number of its examples, where each weighs one.
    ///
    /// # Errors
    /// [`Error::Row`] for a class that there isn't.
    pub fn weight(&self, class: usize) -> Result<u64> {
        let rows = self.classes.len();
        Ok(self.classes.get(class).ok_or(Error::Row { row: class, rows })?.weight())
    }

    /// Adds an example.
    ///
    /// # Errors
    /// [`Error::Row`] for a class that there isn't, [`Error::BitsDiffer`], [`Error::Weight`] for too many,
    /// [`Error::OutOfMemory`].
    pub fn add<'a>(&mut self, class: usize, example: impl Into<HypervectorView<'a>>) -> Result<()> {
        self.class(class)?.add(example, 1)
    }

    /// Adds examples, eight at a time: the fastest way. It adds none if it fails.
    ///
    /// # Errors
    /// Those of [`Centroid::add`].
    pub fn add_all(&mut self, class: usize, examples: &[HypervectorView<'_>]) -> Result<()> {
        self.class(class)?.add_all(examples)
    }

    /// Adds each n-gram of a sequence as an example, so that a long text weighs as much more than a short
    /// one, and returns how many there were.
    ///
    /// # Errors
    /// [`Error::Row`] for a class that there isn't, and those of [`Kernels::add_ngrams`].
    pub fn add_ngrams<'a>(
        &mut self,
        class: usize,
        inputs: impl IntoIterator<Item = impl Into<HypervectorView<'a>>>,
        n: usize,
    ) -> Result<usize> {
        let kernels = self.kernels;
        kernels.add_ngrams(self.class(class)?, inputs, n)
    }

    /// Takes an example back: the class is then, bit for bit, what it would be without it.
    ///
    /// # Errors
    /// [`Error::Row`] for a class that there isn't, and those of [`Bundler::remove`], which can't always
    /// tell that the example was never added.
    pub fn remove<'a>(&mut self, class: usize, example: impl Into<HypervectorView<'a>>) -> Result<()> {
        self.class(class)?.remove(example, 1)
    }

    /// Learns from an example that was taken for `wrong` and is of class `right`: it is added to the
    /// one and its negative to the other.
    ///
    /// # Errors
    /// Those of [`Centroid::add`].
    pub fn correct<'a>(
        &mut self,
        right: usize,
        wrong: usize,
        example: impl Into<HypervectorView<'a>>,
    ) -> Result<()> {
        let example = example.into();
        self.class(wrong)?;
        self.class(right)?.add(example, 1)?;
        let second = self.class(wrong)?.add(example, -1);
        if second.is_err() {
            self.class(right)?.remove(example, 1)?;
        }
        second
    }

    /// The classes as they are now, to predict with. A class without examples is never predicted.
    ///
    /// # Errors
    /// [`Error::Empty`] where no class has an example, [`Error::OutOfMemory`].
    pub fn model(&self) -> Result<CentroidModel> {
        let mut centroids = Codes::new(self.bits)?;
        let mut classes = Vec::new();
        for (class, bundler) in self.classes.iter().enumerate().filter(|(_, bundler)| bundler.weight() > 0) {
            centroids.push(&bundler.bundle()?)?;
            classes.push(class);
        }
        if classes.is_empty() {
            return Err(Error::Empty);
        }
        Ok(CentroidModel { kernels: self.kernels, centroids, classes })
    }

    /// The centroid of one class.
    ///
    /// # Errors
    /// [`Error::Row`] for a class that there isn't, [`Error::Empty`] for one without examples,
    /// [`Error::OutOfMemory`].
    pub fn centroid(&self, class: usize) -> Result<Hypervector> {
        let rows = self.classes.len();
        self.classes.get(class).ok_or(Error::Row { row: class, rows })?.bundle()
    }

    fn class(&mut self, class: usize) -> Result<&mut Bundler> {
        let rows = self.classes.len();
        self.classes.get_mut(class).ok_or(Error::Row { row: class, rows })
    }
}

/// A class that was predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Its number.
    pub class: usize,
    /// The similarity of the query to its centroid, -1 to 1.
    pub similarity: f64,
    /// By how much the next best class is less similar, 0 to 2; with one class only, the distance of
    /// `similarity` from -1.
    pub margin: f64,
}

/// Classes that were learnt: a matrix of centroids, made by [`Centroid::model`].
#[derive(Debug, Clone)]
pub struct CentroidModel {
    kernels: Kernels,
    centroids: Codes,
    classes: Vec<usize>,
}

impl CentroidModel {
    /// The class whose centroid is most like `query`, of equals the one with the lower number.
    ///
    /// # Errors
    /// [`Error::BitsDiffer`], [`Error::OutOfMemory`].
    pub fn predict<'q>(&self, query: impl Into<HypervectorView<'q>>) -> Result<Prediction> {
        self.prediction(&self.kernels.scan(&self.centroids, query, &Search::nearest(2))?)
    }

    /// [`CentroidModel::predict`] for each query, in far less time.
    ///
    /// # Errors
    /// Those of [`Kernels::scan_many`].
    pub fn predict_many(&self, queries: &[HypervectorView<'_>], threads: Threads) -> Result<Vec<Prediction>> {
        let search = Search::nearest(2).threads(threads);
        let found = self.kernels.scan_many(&self.centroids, queries, &search)?;
        found.iter().map(|found| self.prediction(found)).collect()
    }

    /// The centroids, a row each, in the order of their classes.
    pub fn centroids(&self) -> &Codes {
        &self.centroids
    }

    /// The class of each row.
    pub fn classes(&self) -> &[usize] {
        &self.classes
    }

    fn prediction(&self, found: &[Neighbour]) -> Result<Prediction> {
        let bits = self.centroids.bits();
        let first = found.first().ok_or(Error::Empty)?;
        let class = *self.classes.get(first.row).ok_or(Error::Empty)?;
        let similarity = matched(class, first.distance, bits).similarity;
        let next = found.get(1).map_or(-1.0, |next| matched(next.row, next.distance, bits).similarity);
        Ok(Prediction { class, similarity, margin: similarity - next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{negative, vsa::ItemMemory};

    /// An example: the prototype with so large a share of its bits turned.
    fn example(prototype: HypervectorView<'_>, noise: f64, rng: &mut Rng) -> Hypervector {
        let mut out = prototype.to_owned().unwrap();
        for word in out.words_mut() {
            for bit in 0..64 {
                *word ^= u64::from(rng.unit() < noise) << bit;
            }
        }
        out
    }

    #[test]
    fn noisy_examples_are_told_apart_and_more_of_them_help() {
        let (classes, bits, noise) = (10, 1024, 0.40);
        let prototypes = ItemMemory::random(classes, bits, 1).unwrap();
        let mut rng = Rng::new(2);
        let mut learner = Centroid::new(classes, bits, 3).unwrap();
        let mut accuracy = Vec::new();
        for examples in [1, 20] {
            while learner.weight(0).unwrap() < examples {
                for class in 0..classes {
                    let seen = example(prototypes.item(class).unwrap(), noise, &mut rng);
                    learner.add(class, &seen).unwrap();
                }
            }
            let model = learner.model().unwrap();
            let queries: Vec<_> =
                (0..500).map(|at| example(prototypes.item(at % classes).unwrap(), noise, &mut rng)).collect();
            let views: Vec<_> = queries.iter().map(Hypervector::view).collect();
            let found = model.predict_many(&views, Threads::One).unwrap();
            assert!(found.iter().zip(&queries).all(|(found, query)| model.predict(query) == Ok(*found)));
            accuracy.push(found.iter().enumerate().filter(|(at, found)| found.class == at % classes).count());
        }
        // A query's similarity to one example of its class is 0.04 in the mean, 1.3 standard deviations,
        // and to a centroid of twenty 0.13, 4.1 of them; to a stranger's it is 0.
        assert!((150..300).contains(&accuracy[0]), "{accuracy:?}");
        assert!(accuracy[1] >= 475, "{accuracy:?}");
    }

    #[test]
    fn taking_back_leaves_no_trace() {
        let items = ItemMemory::random(12, 512, 1).unwrap();
        let item = |at| items.item(at).unwrap();
        let mut learner = Centroid::new(2, 512, 1).unwrap();
        learner.add_all(0, &[item(0), item(1), item(2)]).unwrap();
        learner.add(1, item(3)).unwrap();
        let before = learner.model().unwrap();
        learner.add(0, item(4)).unwrap();
        assert_ne!(learner.model().unwrap().centroids(), before.centroids());
        learner.remove(0, item(4)).unwrap();
        assert_eq!(learner.model().unwrap().centroids(), before.centroids());
        assert_eq!(learner.remove(1, item(4)), Err(Error::NotInBundle));
        assert_eq!(learner.model().unwrap().centroids(), before.centroids());
    }

    #[test]
    fn a_correction_moves_an_example_over() {
        let items = ItemMemory::random(4, 2048, 1).unwrap();
        let item = |at| items.item(at).unwrap();
        let mut learner = Centroid::new(2, 2048, 1).unwrap();
        learner.add_all(0, &[item(0), item(1), item(2)]).unwrap();
        learner.add(1, item(3)).unwrap();
        assert_eq!(learner.model().unwrap().predict(item(2)).unwrap().class, 0);
        learner.correct(1, 0, item(2)).unwrap();
        let found = learner.model().unwrap().predict(item(2)).unwrap();
        assert_eq!(found.class, 1);
        assert!(found.similarity > 0.4 && found.margin > 0.3, "{found:?}");
        assert_eq!((learner.weight(0), learner.weight(1)), (Ok(4), Ok(2)));
    }

    #[test]
    fn classes_without_examples_are_never_predicted() {
        let items = ItemMemory::random(3, 256, 1).unwrap();
        let mut learner = Centroid::new(5, 256, 1).unwrap();
        assert_eq!(learner.model().err(), Some(Error::Empty));
        learner.add(3, items.item(0).unwrap()).unwrap();
        let model = learner.model().unwrap();
        assert_eq!(model.classes(), [3]);
        let far = negative(items.item(0).unwrap()).unwrap();
        assert_eq!(model.predict(&far), Ok(Prediction { class: 3, similarity: -1.0, margin: 0.0 }));
        learner.add(1, items.item(0).unwrap()).unwrap();
        let tie = learner.model().unwrap().predict(items.item(0).unwrap()).unwrap();
        assert_eq!((tie.class, tie.margin), (1, 0.0));
    }

    #[test]
    fn what_cannot_be_is_refused_and_changes_nothing() {
        assert_eq!(Centroid::new(0, 64, 1).err(), Some(Error::Empty));
        assert_eq!(Centroid::new(usize::MAX, 63, 1).err(), Some(Error::Bits(63)));
        assert!(matches!(Centroid::new(usize::MAX, 64, 1), Err(Error::OutOfMemory(_))));
        let (a, wide) = (Hypervector::zeros(64).unwrap(), Hypervector::zeros(128).unwrap());
        let mut learner = Centroid::new(2, 64, 1).unwrap();
        let (no_class, differ) = (Error::Row { row: 2, rows: 2 }, Error::BitsDiffer { left: 64, right: 128 });
        assert_eq!(learner.add(2, &a), Err(no_class.clone()));
        assert_eq!(learner.remove(2, &a), Err(no_class.clone()));
        assert_eq!(learner.correct(0, 2, &a), Err(no_class.clone()));
        assert_eq!(learner.correct(2, 0, &a), Err(no_class.clone()));
        assert_eq!(learner.add_ngrams(2, [&a], 1), Err(no_class.clone()));
        assert_eq!((learner.weight(2), learner.centroid(2)), (Err(no_class.clone()), Err(no_class)));
        assert_eq!(learner.add(0, &wide), Err(differ.clone()));
        assert_eq!(learner.correct(0, 1, &wide), Err(differ.clone()));
        assert_eq!(learner.add_all(0, &[a.view(), wide.view()]), Err(differ.clone()));
        assert_eq!((learner.weight(0), learner.centroid(0)), (Ok(0), Err(Error::Empty)));
        learner.add(0, &a).unwrap();
        assert_eq!(learner.model().unwrap().predict(&wide), Err(differ));
    }
}
