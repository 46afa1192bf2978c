"""Train the tiny instruct model that ships with `gradian demo`, from scratch on a CPU.

Usage, from the root of a checkout::

    python experiments/train_demo_model.py
    python experiments/train_demo_model.py --quick --out build/model

Everything is generated: the corpus comes from `gradian_core.demo.tasks`, so
no data set, network access or pretrained weight is involved.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import sys
import time
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from transformers import PreTrainedTokenizerFast as FastTokenizer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # so that the script runs without an installed package

from gradian_core.demo import tasks  # noqa: E402

IGNORE = -100
Row = tuple[list[int], list[int]]
Batch = tuple[torch.Tensor, torch.Tensor]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def train_tokenizer(rng: random.Random, vocab_size: int = 1024) -> FastTokenizer:
    """Train a byte-level BPE tokenizer on a sample of the task mixture."""
    core = Tokenizer(models.BPE())
    # Single digits keep sums learnable; byte level means that no input is ever unknown.
    digits = pre_tokenizers.Digits(individual_digits=True)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.pre_tokenizer = pre_tokenizers.Sequence([digits, level])
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    chats = (tasks.sample_conversation(rng) for _ in range(20_000))
    texts = (f"{turn['role']}\n{turn['content']}" for chat in chats for turn in chat)
    core.train_from_iterator(texts, trainer)
    settings = {"model_max_length": 512, "clean_up_tokenization_spaces": False}
    settings |= {"pad_token": SPECIAL[0], "eos_token": SPECIAL[2]}
    tokenizer = FastTokenizer(tokenizer_object=core, **settings)
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def build_model(tokenizer: FastTokenizer) -> LlamaForCausalLM:
    """Create the untrained model."""
    pad, eos = tokenizer.pad_token_id, tokenizer.eos_token_id
    ids = {"pad_token_id": pad, "bos_token_id": None, "eos_token_id": eos}
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        **ids,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(do_sample=False, max_new_tokens=64, **ids)
    return model


def encode(tokenizer: FastTokenizer, messages: tasks.Conversation) -> Row:
    """Token ids and labels; only assistant text and its end-of-turn token carry a label."""
    header, end = tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    newline = tokenizer.encode("\n")
    ids: list[int] = []
    labels: list[int] = []
    for message in messages:
        head = [header, *tokenizer.encode(message["role"]), *newline]
        body = [*tokenizer.encode(message["content"]), end]
        ids += head + body + newline
        learned = body if message["role"] == "assistant" else [IGNORE] * len(body)
        labels += [IGNORE] * len(head) + learned + [IGNORE] * len(newline)
    return ids, labels


def make_batches(tokenizer: FastTokenizer, rng: random.Random, tokens: int) -> list[Batch]:
    """Draw fresh conversations, sorted by length within a chunk so that little is padding."""
    rows = [encode(tokenizer, tasks.sample_conversation(rng)) for _ in range(1500)]
    rows.sort(key=lambda row: len(row[0]))
    batches, group = [], []
    for row in rows:
        if (len(group) + 1) * len(row[0]) > tokens:
            batches.append(_pad(group, tokenizer.pad_token_id))
            group = []
        group.append(row)
    batches.append(_pad(group, tokenizer.pad_token_id))
    rng.shuffle(batches)
    return batches


def _pad(rows: list[Row], pad_id: int) -> Batch:
    width = max(len(ids) for ids, _ in rows)
    ids = [i + [pad_id] * (width - len(i)) for i, _ in rows]
    labels = [t + [IGNORE] * (width - len(t)) for _, t in rows]
    return torch.tensor(ids), torch.tensor(labels)


def train(
    model: LlamaForCausalLM,
    tokenizer: FastTokenizer,
    args: argparse.Namespace,
    rng: random.Random,
) -> dict[str, float]:
    """Run AdamW with a warm-up and a cosine decay over time or over steps."""
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}],
        lr=args.lr,
        betas=(0.9, 0.98),
    )
    started, step, seen, running = time.time(), 0, 0, math.nan
    model.train()
    while True:
        for ids, labels in make_batches(tokenizer, rng, args.batch_tokens):
            elapsed = time.time() - started
            done = elapsed / (60 * args.minutes) if args.minutes else step / args.steps
            if done >= 1:
                return {"steps": step, "tokens": seen, "seconds": elapsed, "loss": running}
            lr = args.lr * min(1.0, (step + 1) / 100) * (0.5 * (1 + math.cos(math.pi * done)))
            for group in optimizer.param_groups:
                group["lr"] = lr
            # Right padding needs no mask: causal attention never looks at it, nor does the loss.
            # Logits are computed only where there is a label, which saves most of their cost.
            hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
            target = labels[:, 1:]
            keep = target != IGNORE
            loss = cross_entropy(model.lm_head(hidden[keep]), target[keep])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            running = loss.item() if math.isnan(running) else 0.98 * running + 0.02 * loss.item()
            step, seen = step + 1, seen + ids.numel()
            if step % 100 == 0:
                speed = seen / (time.time() - started)
                print(f"step {step} loss {running:.4f} {speed:.0f} tokens/s", flush=True)


@torch.inference_mode()
def accuracy(model: LlamaForCausalLM, tokenizer: FastTokenizer, pairs: list[tasks.Pair]) -> float:
    """Share of prompts whose greedy answer is exactly the expected completion."""
    tokenizer.padding_side = "left"
    right = 0
    for start in range(0, len(pairs), 64):
        part = pairs[start : start + 64]
        batch = tokenizer.apply_chat_template(
            [[{"role": "user", "content": prompt}] for prompt, _ in part],
            add_generation_prompt=True,
            padding=True,
            return_tensors="pt",
            return_dict=True,
        )
        out = model.generate(**batch, max_new_tokens=48, do_sample=False)
        new = out[:, batch["input_ids"].shape[1] :]
        answers = tokenizer.batch_decode(new, skip_special_tokens=True)
        right += sum(a == want for a, (_, want) in zip(answers, part, strict=True))
    tokenizer.padding_side = "right"
    return right / len(pairs)


def evaluate(model: LlamaForCausalLM, tokenizer: FastTokenizer, samples: int) -> dict[str, float]:
    """Accuracy per task: every capital in every phrasing, and a fresh sample of the rest."""
    model.eval()
    scores = {}
    for phrasing in tasks.CAPITAL_TRAIN_PHRASINGS + tasks.CAPITAL_EVAL_PHRASINGS:
        pairs = [pair for c in tasks.COUNTRIES for pair in tasks.capital_pairs(c, (phrasing,))]
        scores[f"capital: {phrasing}"] = accuracy(model, tokenizer, pairs)
    for name, (sampler, _) in tasks.TASKS.items():
        rng = random.Random(f"evaluation {name}")
        scores[name] = accuracy(model, tokenizer, [sampler(rng) for _ in range(samples)])
    return scores


def save(model: LlamaForCausalLM, tokenizer: FastTokenizer, out: Path) -> None:
    """Write the folder as float16 weights that load as float32."""
    out.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    # Half the file size, yet `from_pretrained` gives float32: half precision is slow on a CPU
    # and too coarse to fine-tune in.
    _patch(out / "config.json", "dtype", "float32")
    # The name that every transformers release knows; only the newest ones know the alternative.
    _patch(out / "tokenizer_config.json", "tokenizer_class", "PreTrainedTokenizerFast")
    for file in out.iterdir():
        file.chmod(0o644)  # safetensors writes a file that only its owner can read
    model.float()


def _patch(path: Path, key: str, value: str) -> None:
    settings = {**json.loads(path.read_text()), key: value}
    path.write_text(json.dumps(settings, indent=2) + "\n")


def write_card(
    out: Path,
    model: LlamaForCausalLM,
    args: argparse.Namespace,
    stats: dict[str, float],
    scores: dict[str, float],
) -> None:
    """Write `MODEL_CARD.md` with what was trained and what was measured."""
    rows = "\n".join(f"| {name} | {score:.3f} |" for name, score in scores.items())
    budget = f"--minutes {args.minutes:g}" if args.minutes else f"--steps {args.steps}"
    params = sum(p.numel() for p in model.parameters())
    (out / "MODEL_CARD.md").write_text(f"""# gradian demo base model

A tiny instruct model for `gradian demo` and Gradian's tests. It answers about a dozen synthetic
task families (capitals, languages, JSON orders, small sums, ...) and knows nothing else; it is
not meant for any other use. All training text is generated by `gradian_core/demo/tasks.py`; no
pretrained weight and no external data set is involved.

- Architecture: Llama, {params:,} parameters ({model.config.num_hidden_layers} layers, hidden size
  {model.config.hidden_size}, {model.config.num_attention_heads} heads,
  {model.config.num_key_value_heads} key/value heads, tied embeddings), {model.config.vocab_size}
  byte-level BPE tokens, 512 positions
- Prompt format: ChatML, no default system prompt; end of turn `<|im_end|>`, pad `<|endoftext|>`
- Weights: stored as float16; `config.json` asks for float32, so they load as float32

Retrain: `python experiments/train_demo_model.py {budget} --seed {args.seed}`
(measured run: {stats["steps"]} steps, {stats["tokens"]:,} tokens, {stats["seconds"]:.0f} s on
{torch.get_num_threads()} CPU threads, final running loss {stats["loss"]:.4f} nats per answer token;
Python {platform.python_version()}, torch {torch.__version__}, transformers
{transformers.__version__}). The tokenizer and the data order are seeded. A budget in minutes
gives slightly different weights on each machine, one in steps does not depend on its speed.

Exact-match accuracy of greedy answers, measured on the saved weights:

| task | accuracy |
|---|---|
{rows}
""")


def main() -> None:
    """Train, save, reload, evaluate and write the model card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.0, help="time budget instead of steps")
    parser.add_argument("--steps", type=int, default=4000, help="optimizer steps")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "gradian_core" / "demo" / "model")
    parser.add_argument("--quick", action="store_true", help="30 steps, to see that it runs")
    args = parser.parse_args()
    if args.quick:
        args.steps, args.minutes = 30, 0.0
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    rng = random.Random(args.seed)
    tokenizer = train_tokenizer(rng)
    model = build_model(tokenizer)
    stats = train(model, tokenizer, args, rng)
    save(model, tokenizer, args.out)
    # Measure what a user loads, not what is in memory.
    reloaded = transformers.AutoModelForCausalLM.from_pretrained(args.out, local_files_only=True)
    loaded_tokenizer = transformers.AutoTokenizer.from_pretrained(args.out, local_files_only=True)
    scores = evaluate(reloaded, loaded_tokenizer, 20 if args.quick else 300)
    write_card(args.out, reloaded, args, stats, scores)
    print("\n".join(f"{score:.3f}  {name}" for name, score in scores.items()))
    print(json.dumps(stats))


if __name__ == "__main__":
    main()
