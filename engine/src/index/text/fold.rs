//! Folding: what two spellings of one word have in common.
//!
//! Owns the mapping of characters to their folded form (case, width, diacritics). Only index terms
//! are ever folded; the text of a memory stays as it was written.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Appends the folded form of `word` to `out`: lower case, compatibility forms unified, the
/// diacritics of Latin, Greek, Cyrillic, Hebrew and Arabic dropped, ignorable characters dropped.
///
/// Marks that make another letter rather than a shade of one (Japanese voicing, the vowel signs of
/// Thai and of the Indic scripts) are kept.
pub(super) fn fold_into(word: &str, out: &mut String) {
    if word.is_ascii() {
        let from = out.len();
        out.push_str(word);
        if let Some(added) = out.get_mut(from..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    // Lower case goes first and last: the first while letters still carry their context (a final
    // sigma), the last for the capitals that compatibility forms decompose to.
    let folded = word
        .nfkd()
        .flat_map(char::to_lowercase)
        .filter(|&c| !is_dropped(c))
        .nfc()
        .filter(|c| !c.is_whitespace());
    for c in folded {
        match spelled_out(c) {
            Some(letters) => out.push_str(letters),
            None => out.push(c),
        }
    }
}

/// Characters that never tell two words apart.
pub(super) fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E0FFF}')
}

fn is_dropped(c: char) -> bool {
    if is_ignorable(c) {
        return true;
    }
    // The Arabic tatweel stretches a word and is a letter by category.
    c == '\u{640}'
        || (is_combining_mark(c)
            && matches!(c, '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5C7}'
                | '\u{610}'..='\u{61A}' | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{6D6}'..='\u{6ED}'
                | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}'
                | '\u{FE20}'..='\u{FE2F}'))
}

/// Letters that Unicode does not decompose, although people type them without the stroke.
fn spelled_out(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ł' => "l",
        'ħ' => "h",
        'ŧ' => "t",
        'ı' => "i",
        'þ' => "th",
        'ς' => "σ",
        'ʼ' => "'",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(word: &str) -> String {
        let mut out = String::new();
        fold_into(word, &mut out);
        out
    }

    #[test]
    fn spellings_of_one_word_fold_alike() {
        for (a, b) in [
            ("Café", "cafe\u{301}"),
            ("CAFE", "café"),
            ("STRASSE", "straße"),
            ("Ångström", "angstrom"),
            ("Łódź", "lodz"),
            ("ΣΊΣΥΦΟΣ", "σισυφος"),
            ("Ёлка", "елка"),
            ("ＡＢＣ", "abc"),
            ("ﬁne", "FINE"),
            ("İstanbul", "istanbul"),
            ("co\u{AD}operate", "cooperate"),
        ] {
            assert_eq!(fold(a), fold(b), "{a} and {b}");
        }
    }

    #[test]
    fn marks_that_make_another_letter_are_kept() {
        assert_ne!(fold("が"), fold("か"));
        assert_ne!(fold("कि"), fold("क"));
        assert_ne!(fold("ก่"), fold("ก"));
        assert_eq!(fold("한국"), "한국");
    }
}
