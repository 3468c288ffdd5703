"""A folder in which every command of the pages finds what it names: tiny data, masks, lists and texts."""

import json
from pathlib import Path

import torch
import yaml
from torch.nn.utils import prune
from transformers import AutoModel

from tests.tiny import tiny
from tests.words import word_tokenizer
from tombola.tasks import Task

ROWS = 48


def make_place(folder: Path) -> Path:
    """Fill the folder; returns that of a tiny model in it."""
    texts = [text for (text,) in Task.named("reviews").load("train", limit=4 * ROWS).texts]
    short = [" ".join(text.split()[:8]).replace('"', "") for text in texts]
    tokenizer = word_tokenizer(texts, vocab_size=400)
    model = folder / "model"
    tiny("bert", "base", vocab_size=len(tokenizer)).save_pretrained(model)
    tokenizer.save_pretrained(model)
    _glue(folder / "data" / "glue", short)
    _others(folder / "data", short)
    _texts(folder, short)
    _masks(folder, model)
    return model


def _pairs(texts: list[str]) -> list[tuple[str, str]]:
    return list(zip(texts[:ROWS], texts[ROWS : 2 * ROWS], strict=True))


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _table(path: Path, header: list[str], rows: list[tuple[object, ...]]) -> None:
    _write(path, ["\t".join(header), *("\t".join(map(str, row)) for row in rows)])


def _glue(root: Path, texts: list[str]) -> None:
    pairs = _pairs(texts)
    nli = ["entailment", "neutral", "contradiction"]
    for name, file in (("train", "train"), ("dev", "dev_matched"), ("dev", "dev_mismatched")):
        rows = [(i, a, b, nli[i % 3]) for i, (a, b) in enumerate(pairs)]
        _table(root / "MNLI" / f"{file}.tsv", ["index", "sentence1", "sentence2", "gold_label"], rows)
        rows = [(i, a, b, ["entailment", "not_entailment"][i % 2]) for i, (a, b) in enumerate(pairs)]
        _table(root / "RTE" / f"{name}.tsv", ["index", "sentence1", "sentence2", "label"], rows)
        same = [(i % 2, i, i, a, b) for i, (a, b) in enumerate(pairs)]
        _table(root / "MRPC" / f"{name}.tsv", ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"], same)
        single = [(text, i % 2) for i, text in enumerate(texts[:ROWS])]
        _table(root / "SST-2" / f"{name}.tsv", ["sentence", "label"], single)
    tested = [(i, a, b) for i, (a, b) in enumerate(pairs[:5])]
    _table(root / "RTE" / "test.tsv", ["index", "sentence1", "sentence2"], tested)


def _others(root: Path, texts: list[str]) -> None:
    pairs = _pairs(texts)
    columns = ["gold_label", "sentence1", "sentence2", "pairID", "heuristic", "subcase"]
    for part in ("train", "evaluation"):
        rows = [
            (["entailment", "non-entailment"][i % 2], a, b, f"ex{i}", "lexical_overlap", "x")
            for i, (a, b) in enumerate(pairs)
        ]
        _table(root / "hans" / f"heuristics_{part}_set.txt", columns, rows)
    for part in ("train", "dev", "test"):
        rows = [(a, b, ["neutral", "entails"][i % 2]) for i, (a, b) in enumerate(pairs)]
        _table(root / "SciTailV1.1" / f"scitail_1.0_{part}.tsv", *_headless(rows))
    for part in ("train", "valid"):
        words = [
            f"{word} X X {'I-PER' if place == i % 3 else 'O'}" if word else ""
            for i, text in enumerate(texts[:ROWS])
            for place, word in enumerate([*text.split(), ""])
        ]
        _write(root / "conll2003" / f"{part}.txt", words)
    for part in ("train", "dev"):
        questions = [
            {
                "context": a,
                "qas": [
                    {"id": f"q{i}", "question": b, "answers": [{"text": a.split()[0], "answer_start": 0}]}
                ],
            }
            for i, (a, b) in enumerate(pairs)
        ]
        content = {"version": "1.1", "data": [{"title": "t", "paragraphs": questions}]}
        _write(root / "squad" / f"{part}-v1.1.json", [json.dumps(content)])
    adversarial = [{"idx": i, "sentence": text, "label": i % 2} for i, text in enumerate(texts[:ROWS])]
    _write(root / "advglue" / "dev.json", [json.dumps({"sst2": adversarial})])


def _headless(rows: list[tuple[object, ...]]) -> tuple[list[str], list[tuple[object, ...]]]:
    return [str(value) for value in rows[0]], rows[1:]


def _texts(folder: Path, texts: list[str]) -> None:
    """A corpus and its task file, texts without labels, a bias model's predictions."""
    for number in range(3):
        _write(folder / "pretrain_data" / f"{number}.txt", texts[number * ROWS : (number + 1) * ROWS])
    _write(folder / "valid.txt", texts[:ROWS])
    page = (Path(__file__).parents[2] / "docs" / "systems" / "bert_tickets.md").read_text(encoding="utf-8")
    corpus = page.split("```yaml\nname: corpus", 1)[1].split("```", 1)[0]
    assert yaml.safe_load(f"name: corpus{corpus}")["kind"] == "masked-lm"
    _write(folder / "corpus.yaml", [f"name: corpus{corpus}"])
    _write(folder / "new.csv", ["text", *(f'"{text}"' for text in texts[:5])])
    order = ["contradiction", "entailment", "neutral"]
    right = ["entailment", "neutral", "contradiction"]
    predictions = {str(i): [-0.2 if label == right[i % 3] else -2.4 for label in order] for i in range(ROWS)}
    _write(folder / "bias.json", [json.dumps(predictions)])


def _masks(folder: Path, model: Path) -> None:
    """What the published code leaves on disk."""
    encoder = AutoModel.from_pretrained(model)
    parts = [
        part
        for name, part in encoder.named_modules()
        if isinstance(part, torch.nn.Linear) and name != "pooler.dense"
    ] + [encoder.pooler.dense]
    prune.global_unstructured([(part, "weight") for part in parts], prune.L1Unstructured, amount=0.5)
    masks = {f"bert.{name}": value for name, value in encoder.state_dict().items() if "mask" in name}
    torch.save(masks, folder / "mask.pt")
    (folder / "masks").mkdir()
    torch.save(masks, folder / "masks" / "mask.pt")
    _write(folder / "heads_to_mask.json", [json.dumps({"0": {"0": [1, 3], "1": [0]}})])
    _write(folder / "ffn_to_mask.json", [json.dumps({"0": [1]})])
