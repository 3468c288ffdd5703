"""Builds the lexicon that ships inside `tombola.words` from WordNet's database files.

    apt-get download wordnet-base && dpkg -x wordnet-base_*.deb wordnet
    python tools/build_lexicons.py wordnet/usr/share/wordnet src/tombola/words/lexicon

(Any WordNet 3.x `dict` folder with `index.*`, `data.*`, `*.exc` and `cntlist.rev` serves.) Three tables are written:
`wordnet.tsv` (lemma, part of speech, how often it was met as such in tagged text, one-word synonyms in order of how
common the sense is), `irregular.tsv` (inflected form, part of speech, lemma) and `antonyms.tsv` (two groups of words
that mean the opposite of each other). A lemma that is nothing but a noun
and has no synonym is left out: the reader takes an unknown word for a noun anyway. The licence goes beside them.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

PARTS_OF_SPEECH = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
SENSE_KEY_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
ONE_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")


def synsets(path: Path) -> dict[str, list[str]]:
    """The one-word, lower-case lemmas of every synset, by its offset (a capital means a name)."""
    members = {}
    for line in _rows(path):
        fields = line.split(" ")
        count = int(fields[3], 16)
        lemmas = [re.sub(r"\((?:a|p|ip)\)$", "", lemma) for lemma in fields[4 : 4 + 2 * count : 2]]
        members[fields[0]] = [lemma for lemma in lemmas if ONE_WORD.fullmatch(lemma)]
    return members


def synonyms(folder: Path, name: str) -> dict[str, list[str]]:
    """Every one-word lemma of a part of speech with its synonyms, the commonest sense first."""
    members = synsets(folder / f"data.{name}")
    table: dict[str, list[str]] = {}
    for line in _rows(folder / f"index.{name}"):
        fields = line.split()
        lemma, senses = fields[0], int(fields[2])
        if ONE_WORD.fullmatch(lemma):
            offsets = fields[-senses:]
            others = [word for offset in offsets for word in members[offset] if word != lemma]
            table[lemma] = list(dict.fromkeys(others))
    return table


def antonyms(folder: Path, name: str) -> set[tuple[str, str]]:
    """Pairs of groups of opposites, each a line of words: synonyms, and of adjectives also those similar to them.

    WordNet links `good` with `bad` alone; `great` and `awful` are only similar to them.
    """
    members = synsets(folder / f"data.{name}")
    links = {fields[0]: pointers(fields) for fields in map(str.split, _rows(folder / f"data.{name}"))}

    def group(offset: str) -> str:
        similar = [other for symbol, other in links[offset] if symbol == "&"]
        return " ".join(sorted({word for one in (offset, *similar) for word in members[one]}))

    pairs = {
        tuple(sorted((group(offset), group(other))))
        for offset, found in links.items()
        for symbol, other in found
        if symbol == "!"
    }
    return {(one, other) for one, other in pairs if one and other}


def pointers(fields: list[str]) -> list[tuple[str, str]]:
    """The (symbol, offset) of every pointer of a synset to one of its own part of speech."""
    first = 4 + 2 * int(fields[3], 16)
    end = first + 1 + 4 * int(fields[first])
    found = zip(*(fields[first + 1 + i : end : 4] for i in range(3)), strict=True)
    return [(symbol, offset) for symbol, offset, part in found if part in fields[2].replace("s", "a")]


def frequencies(folder: Path) -> Counter[tuple[str, str]]:
    """How often each (lemma, part of speech) was met in the text that WordNet's makers tagged by hand."""
    counts: Counter[tuple[str, str]] = Counter()
    for line in (folder / "cntlist.rev").read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        lemma, sense = key.split("%")
        counts[lemma, SENSE_KEY_TYPES[sense[0]]] += int(count)
    return counts


def irregular(folder: Path, name: str) -> list[tuple[str, str]]:
    """(inflected form, lemma) of the forms that WordNet lists as exceptions to its suffix rules."""
    pairs = []
    for line in (folder / f"{name}.exc").read_text(encoding="utf-8").splitlines():
        form, *lemmas = line.split()
        pairs += [(form, lemma) for lemma in lemmas if ONE_WORD.fullmatch(form) and ONE_WORD.fullmatch(lemma)]
    return pairs


def main() -> None:
    """Read the WordNet folder, write the tables and the licence."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wordnet", type=Path, help="folder with WordNet's database files")
    parser.add_argument("out", type=Path, help="folder to write to")
    arguments = parser.parse_args()

    tables = {letter: synonyms(arguments.wordnet, name) for name, letter in PARTS_OF_SPEECH.items()}
    other_than_noun = set(tables["v"]) | set(tables["a"]) | set(tables["r"])
    counts = frequencies(arguments.wordnet)
    rows = [
        f"{lemma}\t{letter}\t{counts[lemma, letter]}\t{' '.join(words)}\n"
        for letter, table in tables.items()
        for lemma, words in table.items()
        if words or letter != "n" or lemma in other_than_noun
    ]
    exceptions = [
        f"{form}\t{letter}\t{lemma}\n"
        for name, letter in PARTS_OF_SPEECH.items()
        for form, lemma in irregular(arguments.wordnet, name)
    ]
    opposites = [
        f"{one}\t{other}\n" for name in PARTS_OF_SPEECH for one, other in antonyms(arguments.wordnet, name)
    ]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "wordnet.tsv").write_text("".join(sorted(rows)), encoding="utf-8")
    (arguments.out / "irregular.tsv").write_text("".join(sorted(exceptions)), encoding="utf-8")
    (arguments.out / "antonyms.tsv").write_text("".join(sorted(opposites)), encoding="utf-8")
    (arguments.out / "LICENSE-WordNet.txt").write_text(_licence(arguments.wordnet), encoding="utf-8")
    print(f"{len(rows)} lemmas, {len(exceptions)} irregular forms, {len(opposites)} pairs of opposites")


def _rows(path: Path) -> list[str]:
    """The entries of a database file; its licence is the lines that begin with two blanks."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("  ")]


def _licence(folder: Path) -> str:
    """The licence that heads every database file, without the line numbers it is printed with."""
    lines = (folder / "data.adv").read_text(encoding="utf-8").splitlines()
    numbered = [line for line in lines if line.startswith("  ")]
    return "".join(re.sub(r"^ +\d+ ?", "", line).rstrip() + "\n" for line in numbered)


if __name__ == "__main__":
    main()
