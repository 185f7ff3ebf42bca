//! Irregular English: forms whose stem no rule finds.
//!
//! Owns the table of strong verbs and irregular plurals. Forms that are also common words of another
//! meaning (`left`, `found`, `lay`, `bore`, `wound`) are left out.

/// The base of an irregular form, both in lower case.
pub(super) fn base_of(word: &str) -> Option<&'static str> {
    let place = IRREGULAR.binary_search_by_key(&word, |&(form, _)| form).ok()?;
    IRREGULAR.get(place).map(|&(_, base)| base)
}

/// Ordered by form.
#[rustfmt::skip]
const IRREGULAR: &[(&str, &str)] = &[
    ("analyses", "analysis"), ("appendices", "appendix"), ("arisen", "arise"), ("arose", "arise"),
    ("ate", "eat"), ("awoke", "awake"), ("awoken", "awake"), ("beaten", "beat"), ("became", "become"),
    ("began", "begin"), ("begun", "begin"), ("bent", "bend"), ("bit", "bite"), ("bitten", "bite"),
    ("bled", "bleed"), ("blew", "blow"), ("blown", "blow"), ("bought", "buy"), ("broke", "break"),
    ("broken", "break"), ("brought", "bring"), ("built", "build"), ("burnt", "burn"), ("calves", "calf"),
    ("came", "come"), ("caught", "catch"), ("children", "child"), ("chose", "choose"), ("chosen", "choose"),
    ("crept", "creep"), ("crises", "crisis"), ("criteria", "criterion"), ("dealt", "deal"),
    ("drank", "drink"), ("drawn", "draw"), ("dreamt", "dream"), ("drew", "draw"), ("driven", "drive"),
    ("drove", "drive"), ("drunk", "drink"), ("dug", "dig"), ("eaten", "eat"), ("fallen", "fall"),
    ("fed", "feed"), ("feet", "foot"), ("fell", "fall"), ("felt", "feel"), ("flew", "fly"),
    ("flown", "fly"), ("forbade", "forbid"), ("forbidden", "forbid"), ("forgave", "forgive"),
    ("forgiven", "forgive"), ("forgot", "forget"), ("forgotten", "forget"), ("fought", "fight"),
    ("froze", "freeze"), ("frozen", "freeze"), ("gave", "give"), ("geese", "goose"), ("given", "give"),
    ("gone", "go"), ("grew", "grow"), ("grown", "grow"), ("halves", "half"), ("heard", "hear"),
    ("held", "hold"), ("hid", "hide"), ("hidden", "hide"), ("hung", "hang"), ("hypotheses", "hypothesis"),
    ("indices", "index"), ("kept", "keep"), ("knelt", "kneel"), ("knew", "know"), ("knives", "knife"),
    ("known", "know"), ("laid", "lay"), ("leapt", "leap"), ("learnt", "learn"), ("led", "lead"),
    ("lent", "lend"), ("lit", "light"), ("loaves", "loaf"), ("lost", "lose"), ("made", "make"),
    ("matrices", "matrix"), ("meant", "mean"), ("men", "man"), ("met", "meet"), ("mice", "mouse"),
    ("nuclei", "nucleus"), ("overcame", "overcome"), ("paid", "pay"), ("people", "person"),
    ("phenomena", "phenomenon"), ("radii", "radius"), ("ran", "run"), ("rang", "ring"), ("ridden", "ride"),
    ("risen", "rise"), ("rode", "ride"), ("rose", "rise"), ("rung", "ring"), ("said", "say"),
    ("sang", "sing"), ("sank", "sink"), ("sat", "sit"), ("saw", "see"), ("seen", "see"), ("sent", "send"),
    ("shaken", "shake"), ("shelves", "shelf"), ("shone", "shine"), ("shook", "shake"), ("shot", "shoot"),
    ("shown", "show"), ("shrank", "shrink"), ("shrunk", "shrink"), ("slept", "sleep"), ("slid", "slide"),
    ("sold", "sell"), ("sought", "seek"), ("spent", "spend"), ("spoke", "speak"), ("spoken", "speak"),
    ("spun", "spin"), ("stole", "steal"), ("stolen", "steal"), ("stood", "stand"), ("struck", "strike"),
    ("stuck", "stick"), ("stung", "sting"), ("sung", "sing"), ("sunk", "sink"), ("swam", "swim"),
    ("swept", "sweep"), ("swollen", "swell"), ("swore", "swear"), ("sworn", "swear"), ("swum", "swim"),
    ("swung", "swing"), ("taken", "take"), ("taught", "teach"), ("teeth", "tooth"), ("theses", "thesis"),
    ("thieves", "thief"), ("thought", "think"), ("threw", "throw"), ("thrown", "throw"), ("told", "tell"),
    ("took", "take"), ("tore", "tear"), ("torn", "tear"), ("understood", "understand"),
    ("undertaken", "undertake"), ("undertook", "undertake"), ("vertices", "vertex"), ("went", "go"),
    ("withdrawn", "withdraw"), ("withdrew", "withdraw"), ("wives", "wife"), ("woke", "wake"),
    ("woken", "wake"), ("wolves", "wolf"), ("women", "woman"), ("won", "win"), ("wore", "wear"),
    ("worn", "wear"), ("wove", "weave"), ("woven", "weave"), ("written", "write"), ("wrote", "write"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_for_the_search() {
        assert!(IRREGULAR.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(base_of("went"), Some("go"));
        assert_eq!(base_of("goes"), None);
    }
}
