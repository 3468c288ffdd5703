"""Build the bundled `reviews` data from the source distribution of vaderSentiment 3.3.2 (MIT).

    python tools/build_reviews.py vaderSentiment-3.3.2.tar.gz --sst2 glue/SST-2

The output depends on the inputs alone. Without --sst2 the film sentences are not cleared of SST-2's dev and test sets.
"""

import argparse
import html
import io
import re
import tarfile
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

DOMAINS = {
    "film": "movieReviewSnippets_GroundTruth.txt",
    "product": "amazonReviewSnippets_GroundTruth.txt",
    "newspaper": "nytEditorialSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
}
THRESHOLD = 0.5  # |mean rating| below this (on a scale of -4 to 4) is near-neutral
SHARES = {"test": 0.20, "validation": 0.15}  # the rest is train
OUTPUT = Path(__file__).parents[1] / "src/tombola/tasks/bundled/reviews"


class Sentence(NamedTuple):
    """A rated sentence of the source."""

    identity: str
    rating: float
    text: str

    @property
    def key(self) -> str:
        """What makes two sentences the same."""
        return normalised(self.text)


def normalised(text: str) -> str:
    """Lower-case letters and digits only: equal for copies that differ in spacing, quotes or hyphens."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def read_sentences(sdist: Path) -> dict[str, list[Sentence]]:
    """Every domain's sentences out of the archive inside the source distribution."""
    with tarfile.open(sdist) as outer:
        inner = next(member for member in outer if member.name.endswith("hutto_ICWSM_2014.tar.gz"))
        archive = outer.extractfile(inner).read()
        license_text = outer.extractfile(f"{inner.name.split('/')[0]}/LICENSE.txt").read()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {Path(member.name).name: tar.extractfile(member).read() for member in tar if member.isfile()}
    (OUTPUT / "LICENSE").write_bytes(license_text.replace(b"\r\n", b"\n"))
    return {domain: [parse(line) for line in lines(files[name])] for domain, name in DOMAINS.items()}


def lines(content: bytes) -> list[str]:
    """Lines of a file with CR LF line ends."""
    return content.decode("utf-8").replace("\r\n", "\n").strip("\n").split("\n")


def parse(line: str) -> Sentence:
    """A line of the source: id, mean rating, text."""
    identity, rating, text = line.split("\t")
    return Sentence(identity, float(rating), " ".join(unescaped(text).split()))


def unescaped(text: str) -> str:
    """HTML entities as characters; some were escaped twice."""
    return html.unescape(html.unescape(text))


def sst2_rows(folder: Path, name: str) -> set[str]:
    """The normalised sentences of one of SST-2's files."""
    rows = (folder / name).read_text(encoding="utf-8").strip("\n").split("\n")[1:]
    return {normalised(row.rsplit("\t", 1)[0]) for row in rows}


def parts(text: str) -> list[str]:
    """The normalised sentences of a snippet: SST cut snippets at sentence ends before it chose its splits."""
    return [normalised(part) for part in re.split(r"(?<=[.!?])['\")\]]*\s+", text)]


def known_to_be_train(text: str, train: set[str], dev: set[str]) -> bool:
    """The snippet, or each of its sentences, is a row of SST-2's train file, and none of dev. What is in neither
    file may be from the unpublished test set, so it does not pass."""
    found = normalised(text) in train or all(part in train for part in parts(text))
    return found and not any(part in dev for part in [normalised(text), *parts(text)])


def split_of(key: str) -> str:
    """A split for good, by a hash of the sentence."""
    point = int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) / 2**64
    for split, share in SHARES.items():
        if point < share:
            return split
        point -= share
    return "train"


def main() -> None:
    """Read, filter, split, write, and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sdist", type=Path, help="vaderSentiment-3.3.2.tar.gz from PyPI")
    parser.add_argument("--sst2", type=Path, help="folder with SST-2's train.tsv and dev.tsv (GLUE layout)")
    options = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    for domain, sentences in read_sentences(options.sdist).items():
        kept = [s for s in sentences if abs(s.rating) >= THRESHOLD and s.key]
        counts = {"rated": len(sentences), "not neutral": len(kept)}
        if domain == "film" and options.sst2 is not None:
            train, dev = (sst2_rows(options.sst2, name) for name in ("train.tsv", "dev.tsv"))
            kept = [s for s in kept if known_to_be_train(s.text, train, dev)]
            counts["in SST-2 train only"] = len(kept)
        unique = {s.key: s for s in reversed(kept) if s.key not in seen}
        kept = sorted(unique.values(), key=lambda s: [int(part) for part in s.identity.split("_")])
        seen |= unique.keys()
        counts["unique"] = len(kept)
        (OUTPUT / domain).mkdir(exist_ok=True)
        for split in ("train", "validation", "test"):
            rows = [s for s in kept if split_of(s.key) == split]
            table = ["id\trating\tlabel\ttext"]
            table += [
                f"{s.identity}\t{s.rating:.3f}\t{'positive' if s.rating > 0 else 'negative'}\t{s.text}"
                for s in rows
            ]
            (OUTPUT / domain / f"{split}.tsv").write_text(
                "\n".join(table) + "\n", encoding="utf-8", newline="\n"
            )
            counts[split] = len(rows)
            counts[f"{split} positive"] = Counter(s.rating > 0 for s in rows)[True]
        print(domain, counts)


if __name__ == "__main__":
    main()
