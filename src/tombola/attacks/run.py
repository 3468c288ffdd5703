"""Attack a classifier: sample examples, search in lock-step, keep a journal, report."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tombola.attacks.base import Attack, Tools, configure
from tombola.attacks.journal import AttackJournal
from tombola.attacks.material import Labelled, Material
from tombola.attacks.report import AttackReport, Example
from tombola.attacks.resources import Resources
from tombola.attacks.scorer import Scorer
from tombola.attacks.trial import attack_examples, oracles_of
from tombola.defenses.tokenizing import defense_of
from tombola.errors import TombolaError
from tombola.evaluation.long_texts import LongTexts
from tombola.evaluation.predict import evaluating
from tombola.foundations.hardware import Precision
from tombola.store.stage import Progress
from tombola.tasks import Split, position_limit

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from tombola.evaluation.labels import LabelOrder

logger = logging.getLogger(__name__)


def attack(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    examples: "Split | Sequence[Labelled]",
    recipe: str | Attack = "textfooler",
    *,
    n: int | None = None,
    seed: int = 0,
    labels: Sequence[str] | None = None,
    attackable: Sequence[str] | None = None,
    resources: Resources | None = None,
    query_budget: int | None = None,
    max_length: int = 128,
    precision: Precision = "fp32",
    lanes: int = 128,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    long: LongTexts | None = None,
) -> AttackReport:
    """Attack any transformers classifier on a class-balanced random sample of `n` examples (all by default).

    `examples`: a task's split, or pairs of (text or two texts, label index). `recipe`: the name of an attack, for the
    published settings, or an `Attack` with your own. `attackable`: the columns that may be changed, instead of the
    task's. `lanes`: examples attacked at once. `resume`: a JSON-lines file for finished examples; the same call
    continues after them. `progress` is called with the number of finished examples, the total, and the accuracy under
    attack so far. If the tokenizer has a defense, the attack edits raw texts and the defense corrects every query, so
    that the attack finds what gets past it. `long` counts and reports the truncated texts of the sample first.
    """
    chosen = configure(recipe, {}) if isinstance(recipe, str) else recipe
    resources = resources or Resources()
    resources.require(chosen)
    material = Material.of(examples, model.config, labels, attackable)
    indices = material.sample(n, seed)
    for name, number in {"query_budget": query_budget, "lanes": lanes}.items():
        if number is not None and number < 1:
            raise TombolaError(f"{name}: takes 1 or more, not {number}.")
    order = _label_order(model.config, examples)
    scorer = Scorer(model, tokenizer, max_length=max_length, precision=precision, order=order)
    if long is not None:
        name = (
            f"{examples.task.name}/{examples.name}" if isinstance(examples, Split) else "examples/unlabelled"
        )
        long.count(name, [material.texts[i] for i in indices], tokenizer, scorer.max_length)
        long.warn(_reading_more(scorer.max_length, model.config))
    tools = Tools(
        resources,
        Random(),
        material.attackable_columns,
        unknown=tokenizer.unk_token or Tools.unknown,
        mask=tokenizer.mask_token or tokenizer.unk_token or Tools.mask,
    )
    settings = {
        "attack": chosen.name,
        "settings": chosen.settings,
        "examples": material.fingerprint(indices),
        "attackable": material.attackable,
        "seed": seed,
        "query_budget": query_budget,
        "max_length": max_length,
        "precision": precision,
        "resources": resources.fingerprints(),
    }
    if (defense := defense_of(tokenizer)) is not None:
        settings["defense"] = defense.fingerprint
    if order is not None:
        settings["outputs"] = order.outputs
    start = perf_counter()
    with evaluating(model, scorer.collate.pad_id), _journal(resume, settings, model) as journal:
        records = journal.records if journal else []
        kept = {int(record["index"]): Example.from_json(record) for record in records}
        attacked = [kept[i] for i in indices if i in kept]
        resumed = len(attacked)
        before = max((float(record["seconds"]) for record in records), default=0.0)
        used = {kind: name for record in records for kind, name in record["resources"].items()}
        robust = sum(example.result_type == "Failed" for example in attacked)
        if progress is not None and resumed:
            progress(resumed, len(indices), {"under attack": robust / resumed})
        done = {example.index for example in attacked}
        for example in attack_examples(
            chosen,
            material,
            [i for i in indices if i not in done],
            oracles_of(scorer, resources),
            tools,
            seed=seed,
            lanes=lanes,
            budget=query_budget,
        ):
            attacked.append(example)
            if journal:
                seconds = before + perf_counter() - start
                journal.append({**example.to_json(), "seconds": seconds, "resources": resources.used()})
            robust += example.result_type == "Failed"
            if progress is not None:
                progress(len(attacked), len(indices), {"under attack": robust / len(attacked)})
    return AttackReport(
        attack=chosen.name,
        settings=chosen.settings,
        examples=sorted(attacked, key=lambda example: example.index),
        columns=material.columns,
        labels=material.labels,
        seed=seed,
        query_budget=query_budget,
        resources=used | resources.used(),
        seconds=before + perf_counter() - start,
        rows=sum(example.rows for example in attacked),
        similarity_rows=sum(example.similarity_rows for example in attacked),
        resumed=resumed,
    )


def _label_order(config: "PreTrainedConfig", examples: "Split | Sequence[Labelled]") -> "LabelOrder | None":
    """Return which outputs mean which of a task's labels; None if each means the label of its place."""
    from tombola.evaluation.labels import label_order

    if not isinstance(examples, Split):
        return None
    order = label_order(config, examples.task)
    for note in order.notes:
        logger.warning("%s", note)
    return None if order.outputs == [[label] for label in range(config.num_labels)] else order


def _reading_more(max_length: int, config: "PreTrainedConfig") -> str:
    """Explain what truncated texts mean for an attack, and what to do."""
    limit = position_limit(config)
    more = f"; use --max-length {limit} to read more" if limit is not None and limit > max_length else ""
    return f"changes after that point have no effect{more}"


def _journal(
    path: str | Path | None, settings: dict[str, Any], model: "PreTrainedModel"
) -> AbstractContextManager[AttackJournal | None]:
    if path is None:
        return nullcontext()
    return AttackJournal(path, settings | {"model": _weights_hash(model)})


def _weights_hash(model: "PreTrainedModel") -> str:
    """Hash every tensor of the model, so that a journal is never continued with another model.

    A model without tensors, such as an ONNX file, has its own fingerprint.
    """
    if (fingerprint := getattr(model, "fingerprint", None)) is not None:
        return str(fingerprint)
    digest = blake2b(digest_size=16)
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().float().contiguous().numpy().data)
    return digest.hexdigest()
