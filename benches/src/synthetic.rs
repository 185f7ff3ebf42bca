//! Codes to search: a seeded mixture with clusters, or codes of real text.
//!
//! Owns how codes for measurements come to be. A line of text is coded as the bundle of the
//! hypervectors of its pairs of characters, each random and a function of the seed and the pair
//! alone (Joshi, Halseth and Kanerva, "Language geometry using random indexing", 2016). Pairs rather than
//! triples because their codes are more like those of embeddings: 250,000 short texts lie 0.41 of the bits from
//! a text on average, with a standard deviation of 0.038, and its tenth neighbour 0.27; with triples it is
//! 0.47, 0.026 and 0.34, of which 0.016 is the noise of 1,024 bits.
//!
//! The mixture has what makes real codes harder than equal clusters: topics of unequal size, which overlap,
//! so that rows that aren't neighbours are at unequal distances too, and within each a spread from near
//! duplicates to members that are hardly nearer than strangers. The bits of a row are its topic's or its
//! cluster's with seeded errors: a quarter to 0.44 of a cluster's bits differ from its topic's, and of a row's
//! or a query's bits 0.03 to 0.31 from its cluster's.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use warm_kernels::{Bundler, Codes, Hypervector, HypervectorView, Kernels, Rng};

use crate::timing::Failure;

/// Codes and queries that are none of them.
pub struct Data {
    pub codes: Codes,
    pub queries: Vec<Hypervector>,
}

/// A mixture of clusters in topics: of both, a few are large and many are small.
pub fn mixture(bits: usize, rows: usize, queries: usize, seed: u64) -> Result<Data, warm_kernels::Error> {
    let mut rng = Rng::new(seed);
    let count = (rows / 50).max(1);
    let topics = (0..count.div_ceil(100)).map(|_| Hypervector::random(bits, &mut rng));
    let topics = topics.collect::<Result<Vec<_>, _>>()?;
    let mut near = Hypervector::zeros(bits)?;
    let mut centres = Vec::with_capacity(count);
    for _ in 0..count {
        let topic = &topics[skewed(&mut rng, topics.len())];
        blur(topic, 64 + rng.below(48), &mut rng, &mut near);
        centres.push(near.clone());
    }
    let mut draw = |near: &mut Hypervector| {
        let centre = &centres[skewed(&mut rng, centres.len())];
        blur(centre, 8 + rng.below(72), &mut rng, near);
    };
    let mut codes = Codes::zeros(bits, rows)?;
    for row in 0..rows {
        draw(&mut near);
        codes.set(row, &near)?;
    }
    let queries = (0..queries)
        .map(|_| {
            draw(&mut near);
            near.clone()
        })
        .collect();
    Ok(Data { codes, queries })
}

/// A number below `count`, small ones more often: half of all are in the first quarter.
fn skewed(rng: &mut Rng, count: usize) -> usize {
    let unit = rng.unit();
    ((unit * unit * count as f64) as usize).min(count - 1)
}

/// `out` is `from` with `errors` in 256 of its bits the other way, on average.
fn blur(from: &Hypervector, errors: u64, rng: &mut Rng, out: &mut Hypervector) {
    for (out, &from) in out.words_mut().iter_mut().zip(from.words()) {
        // From the lowest binary digit of the share up: an or makes a bit likelier, an and rarer.
        let mut wrong = 0;
        for digit in 0..8 {
            let random = rng.next_u64();
            wrong = if errors >> digit & 1 == 1 { wrong | random } else { wrong & random };
        }
        *out = from ^ wrong;
    }
}

/// The lines of a file, or of a `.gz` by way of gzip.
fn lines(path: &Path) -> Result<Vec<String>, Failure> {
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text: Box<dyn Read> = if path.extension().is_some_and(|end| end == "gz") {
        let gzip = Command::new("gzip").arg("-dc").stdin(file).stdout(Stdio::piped()).spawn()?;
        Box::new(gzip.stdout.ok_or("gzip has no output")?)
    } else {
        Box::new(file)
    };
    Ok(BufReader::new(text)
        .lines()
        .filter(|line| line.as_ref().is_ok_and(|l| l.len() > 2))
        .collect::<Result<_, _>>()?)
}

/// At most `rows` codes of the lines of `path`; queries are lines left out, evenly spread.
pub fn texts(
    kernels: Kernels,
    path: &Path,
    bits: usize,
    rows: usize,
    queries: usize,
    seed: u64,
) -> Result<Data, Failure> {
    let lines = lines(path)?;
    let apart = (lines.len() / queries.max(1)).max(2);
    // Which lines the queries are depends on the seed too.
    let shift = Rng::new(seed).below(apart as u64) as usize;
    let mut table: HashMap<[u8; 2], Hypervector> = HashMap::new();
    let mut data = Data { codes: Codes::new(bits)?, queries: Vec::new() };
    for (at, line) in lines.iter().enumerate() {
        let pairs: Vec<[u8; 2]> = format!(" {} ", line.to_lowercase())
            .as_bytes()
            .windows(2)
            .map(|gram| [gram[0], gram[1]])
            .collect();
        for gram in &pairs {
            if !table.contains_key(gram) {
                let number = u64::from(u16::from_le_bytes(*gram));
                table.insert(*gram, Hypervector::random(bits, &mut Rng::stream(seed, number))?);
            }
        }
        let inputs: Vec<HypervectorView<'_>> = pairs.iter().map(|gram| table[gram].view()).collect();
        let mut bundler = Bundler::on(kernels, bits, seed)?;
        bundler.add_all(&inputs)?;
        let code = bundler.bundle()?;
        if at % apart == shift && data.queries.len() < queries {
            data.queries.push(code);
        } else if data.codes.len() < rows {
            data.codes.push(&code)?;
        }
    }
    if data.queries.is_empty() {
        return Err(format!("{}: too few lines for a query", path.display()).into());
    }
    Ok(data)
}
