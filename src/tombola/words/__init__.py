"""Words in text: their positions, neighbouring keys, look-alike letters and synonyms."""
