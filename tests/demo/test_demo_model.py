"""The embedded model is what its card says."""

from __future__ import annotations

import json

from gradian_core.demo import MODEL_FOLDER, tasks


def test_it_is_small_and_an_ordinary_checkpoint():
    names = {path.name for path in MODEL_FOLDER.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "MODEL_CARD.md"} <= names
    assert sum(path.stat().st_size for path in MODEL_FOLDER.iterdir()) < 6_000_000
    config = json.loads((MODEL_FOLDER / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert config["num_key_value_heads"] < config["num_attention_heads"]


def test_it_knows_every_capital_in_every_phrasing():
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from gradian_core.data.encode import prompt_ids
    from gradian_core.data.files import dataset_from_rows
    from gradian_core.evaluation.generate import generate
    from gradian_core.model.quiet import quiet

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(MODEL_FOLDER, local_files_only=True)
    with quiet():
        model = AutoModelForCausalLM.from_pretrained(MODEL_FOLDER, local_files_only=True).eval()
    pairs = [
        pair
        for country in tasks.COUNTRIES
        for pair in tasks.capital_pairs(country, tasks.CAPITAL_EVAL_PHRASINGS)
    ]
    data = dataset_from_rows([{"prompt": q, "completion": a} for q, a in pairs])
    answers = generate(
        model,
        tokenizer,
        [prompt_ids(example, tokenizer) for example in data],
        max_new_tokens=12,
        batch_size=64,
        pad_token_id=tokenizer.pad_token_id,
    )
    assert [answer.text for answer in answers] == [a for _, a in pairs]
