//! Codes to search: a seeded mixture with clusters, or codes of real text.
//!
//! Owns how codes for measurements come to be. A line of text is coded as the bundle of the
//! hypervectors of its character trigrams, each random and a function of the seed and the trigram
//! alone (Joshi, Halseth and Kanerva, "Language geometry using random indexing", 2016).

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use warm_kernels::{Bundler, Codes, Hypervector, HypervectorView, Kernels, Rng};

use crate::timing::Failure;

const SEED: u64 = 0x5741_524d;

/// Codes and queries that are none of them.
pub struct Data {
    pub codes: Codes,
    pub queries: Vec<Hypervector>,
}

/// A mixture: a centre for every hundred rows, rows and queries at a quarter of the bits from one.
pub fn mixture(bits: usize, rows: usize, queries: usize) -> Result<Data, warm_kernels::Error> {
    let mut rng = Rng::new(SEED);
    let centres = (0..(rows / 100).max(1))
        .map(|_| Hypervector::random(bits, &mut rng))
        .collect::<Result<Vec<_>, _>>()?;
    let mut near = Hypervector::zeros(bits)?;
    let mut draw = |near: &mut Hypervector| {
        let centre = &centres[rng.below(centres.len() as u64) as usize];
        for (word, centre) in near.words_mut().iter_mut().zip(centre.words()) {
            *word = centre ^ (rng.next_u64() & rng.next_u64());
        }
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
) -> Result<Data, Failure> {
    let lines = lines(path)?;
    let apart = (lines.len() / queries.max(1)).max(2);
    let mut table: HashMap<[u8; 3], Hypervector> = HashMap::new();
    let mut data = Data { codes: Codes::new(bits)?, queries: Vec::new() };
    for (at, line) in lines.iter().enumerate() {
        let trigrams: Vec<[u8; 3]> = format!(" {} ", line.to_lowercase())
            .as_bytes()
            .windows(3)
            .map(|gram| [gram[0], gram[1], gram[2]])
            .collect();
        for gram in &trigrams {
            if !table.contains_key(gram) {
                let number = u64::from(u32::from_le_bytes([gram[0], gram[1], gram[2], 0]));
                table.insert(*gram, Hypervector::random(bits, &mut Rng::stream(SEED, number))?);
            }
        }
        let inputs: Vec<HypervectorView<'_>> = trigrams.iter().map(|gram| table[gram].view()).collect();
        let mut bundler = Bundler::on(kernels, bits, SEED)?;
        bundler.add_all(&inputs)?;
        let code = bundler.bundle()?;
        if at % apart == apart / 2 && data.queries.len() < queries {
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
