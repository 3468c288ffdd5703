"""How much memory and time `tombola prune` takes for a whole language model, against the bytes of the model.

    python benchmarks/whole_llm.py [--parameters 1.5] [--dtype bfloat16] [--method wanda] [--pattern 2:4] [--folder DIR]

Writes a random Llama of so many billion parameters, shard by shard, and a small task; then a process of its own prunes
it. Its peak of resident memory covers everything: Python, torch, the calibration data, one layer in 32 bits. The goal
is a peak of at most 35 % of the model's bytes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from measuring import Figure, run
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast

VOCABULARY, HIDDEN, FFN, HEADS = 32_000, 2048, 5632, 16
PRUNE = """
import json, sys
import torch
import tombola
model, task, output, method, pattern, examples, length, threads = sys.argv[1:]
torch.set_num_threads(int(threads))
done = tombola.prune(
    model, task, output, method=method, pattern=pattern, examples=int(examples), max_length=int(length),
    progress=lambda layer, of: print(f"layer {layer} of {of}", file=sys.stderr, flush=True),
)
figures = {"seconds": done.seconds, "peak": done.peak_memory, "sparsity": done.mask.sparsity}
print(json.dumps({**figures, "removed": done.mask.removed}))
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parameters", type=float, default=1.5, help="billions")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--method", default="wanda")
    parser.add_argument("--pattern", default="2:4")
    parser.add_argument("--examples", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--folder", type=Path, help="where the models go; else a temporary folder")


def figures(given: argparse.Namespace) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        folder, parameters = Path(place), 0.3 if given.quick else given.parameters
        count, size = write_llama(folder / "model", parameters * 1e9, getattr(torch, given.dtype))
        write_task(folder, given.examples, given.length)
        asked = (given.method, given.pattern, given.examples, given.length, given.threads)
        command = [sys.executable, "-c", PRUNE, folder / "model", folder / "task.yaml", folder / "pruned"]
        done = subprocess.run(
            [*map(str, command), *map(str, asked)], check=True, stdout=subprocess.PIPE, text=True
        )
        found = json.loads(done.stdout)
    goal = "" if given.quick else "≤ 0.35"  # Python and torch alone are more than that of a small model
    what = f"{count / 1e9:.1f} B parameters, {given.method} {given.pattern}"
    note = f"{found['removed']:,} removed ({found['sparsity']:.1%})"
    yield Figure(f"peak memory ÷ the model, {what}", found["peak"] / size, goal, note=note)
    yield Figure(f"pruning {what}", found["seconds"], unit="s")


def write_llama(folder: Path, parameters: float, dtype: torch.dtype) -> tuple[int, int]:
    """A random Llama, one shard a layer: its parameters and its bytes."""
    layer = {
        "self_attn.q_proj.weight": (HIDDEN, HIDDEN),
        "self_attn.k_proj.weight": (HIDDEN, HIDDEN),
        "self_attn.v_proj.weight": (HIDDEN, HIDDEN),
        "self_attn.o_proj.weight": (HIDDEN, HIDDEN),
        "mlp.gate_proj.weight": (FFN, HIDDEN),
        "mlp.up_proj.weight": (FFN, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, FFN),
        "input_layernorm.weight": (HIDDEN,),
        "post_attention_layernorm.weight": (HIDDEN,),
    }
    outside = {
        "model.embed_tokens.weight": (VOCABULARY, HIDDEN),
        "model.norm.weight": (HIDDEN,),
        "lm_head.weight": (VOCABULARY, HIDDEN),
    }
    numbers = {name: torch.Size(shape).numel() for name, shape in (layer | outside).items()}
    rest = sum(numbers[name] for name in outside)
    layers = max(1, round((parameters - rest) / sum(numbers[name] for name in layer)))
    folder.mkdir(parents=True)
    LlamaConfig(
        hidden_size=HIDDEN,
        intermediate_size=FFN,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        vocab_size=VOCABULARY,
        dtype=dtype,
        architectures=["LlamaForCausalLM"],
        tie_word_embeddings=False,
        pad_token_id=0,
    ).save_pretrained(folder)
    shards = [
        {f"model.layers.{index}.{name}": shape for name, shape in layer.items()} for index in range(layers)
    ]
    generator = torch.Generator().manual_seed(0)
    weight_map: dict[str, str] = {}
    for number, shapes in enumerate([outside, *shards], start=1):
        name = f"model-{number:05}-of-{layers + 1:05}.safetensors"
        tensors = {
            key: torch.ones(shape, dtype=dtype)
            if len(shape) == 1
            else torch.randn(shape, generator=generator).mul_(0.02).to(dtype)
            for key, shape in shapes.items()
        }
        save_file(tensors, folder / name, {"format": "pt"})
        weight_map |= dict.fromkeys(tensors, name)
    count = rest + layers * sum(numbers[name] for name in layer)
    index = {"metadata": {"total_size": count * dtype.itemsize}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    words = Tokenizer(
        models.WordLevel({"[PAD]": 0, "[UNK]": 1, **{f"w{i}": i for i in range(2, 2000)}}, "[UNK]")
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
    tokenizer.save_pretrained(folder)
    return count, count * dtype.itemsize


def write_task(folder: Path, examples: int, length: int) -> None:
    """Texts of random words, as many tokens long as they are calibrated on."""
    words = torch.randint(2, 2000, (examples, length), generator=torch.Generator().manual_seed(1))
    rows = [" ".join(f"w{word}" for word in text) for text in words.tolist()]
    (folder / "train.tsv").write_text(
        "\n".join(["text\tlabel", *(f"{row}\tone" for row in rows), "w2\tother"])
    )
    (folder / "task.yaml").write_text(
        "name: words\nversion: 1\ntext: text\nlabels: [one, other]\nmetrics: [accuracy]\n"
        "source: {files: {train: train.tsv}}\n"
    )


if __name__ == "__main__":
    run(__doc__, figures, options)
