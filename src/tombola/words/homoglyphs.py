"""Look-alike letters: Cyrillic, Greek and signs that resemble Latin letters, and back."""

CYRILLIC = dict(zip("aceopxyisjhkABCEHIJKMOPSTXYh", "асеорхуіѕјһкАВСЕНІЈКМОРЅТХУһ", strict=True))
GREEK = dict(zip("ovnuABEZHIKMNOPTYX", "ονηυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", strict=True))
SIGNS = {"a": "@", "e": "3", "i": "1", "l": "1", "o": "0", "s": "5"}
"""TextBugger's substitutes for letters. (Li et al. 2019, table III)"""

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
"""Zero-width characters: zero-width space, non-joiner, joiner, word joiner, byte-order mark, soft hyphen."""

TO_LATIN: dict[str, str] = {
    **{look: letter for letter, look in GREEK.items()},
    **{look: letter for letter, look in CYRILLIC.items()},
    "α": "a", "ε": "e", "ι": "i", "ρ": "p", "τ": "t", "κ": "k", "ω": "w", "χ": "x", "γ": "y",
    "м": "m", "т": "t", "в": "b", "н": "h", "п": "n", "г": "r", "ԁ": "d", "ԛ": "q", "ԝ": "w", "ӏ": "l",
    "ı": "i", "ɑ": "a", "ɡ": "g", "ɩ": "i", "ʏ": "y", "ᴄ": "c", "ᴏ": "o", "ꜱ": "s", "ᴠ": "v", "ᴡ": "w", "ᴢ": "z",
}  # fmt: skip
"""The Latin letter that a letter of another script, or a rare Latin one, resembles."""
