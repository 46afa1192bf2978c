"""Model cards (README.md) that trainers write: hyperparameters, results, versions, base model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradian_core.errors import InputError
from gradian_core.runs.artifact import TrainerLog, Value
from gradian_core.runs.evidence import found

from ._files import finite, number, text_of
from ._optimisers import optimiser
from ._yaml import YamlConfig, parse_yaml

__all__ = ["Card", "card_log", "card_values", "is_card", "read_card"]

_MOST_BYTES = 2 << 20
_HEADING = re.compile(r"^#{1,6}\s+(.*\S)")
_LINE = re.compile(r"^- ([a-z_]{1,60}): (.*\S)")
_VERSION = re.compile(r"^- \*{0,2}([A-Za-z]{2,20}):?\*{0,2}:? +v?(\d[\w.+!-]{0,60})\s*$")
_AXOLOTL = re.compile(r"^axolotl version: `([^`\n]{1,80})`")
_PACKAGES = {"pytorch": "torch"}
_BETAS = re.compile(r"betas=\(([\d.e-]+), ?([\d.e-]+)\).{0,10}epsilon=([\d.e-]+)")

_NAMES = {
    "learning_rate": "learning_rate",
    "train_batch_size": "per_device_train_batch_size",
    "eval_batch_size": "per_device_eval_batch_size",
    "seed": "seed",
    "num_devices": "world_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "total_train_batch_size": "total_train_batch_size",
    "lr_scheduler_type": "lr_scheduler_type",
    "lr_scheduler_warmup_steps": "warmup_steps",
    "lr_scheduler_warmup_ratio": "warmup_ratio",
    "training_steps": "max_steps",
    "num_epochs": "num_train_epochs",
    "label_smoothing_factor": "label_smoothing_factor",
}
_UNLISTED: dict[str, Any] = {
    "world_size": 1,
    "gradient_accumulation_steps": 1,
    "warmup_steps": 0,
    "warmup_ratio": 0.0,
    "label_smoothing_factor": 0.0,
    "fp16": False,
}
"""What it means that transformers' card does not list one of these."""


@dataclass(slots=True)
class Card:
    """What a card says; each entry with its line.

    Parameters
    ----------
    name
        Name of the file, for sources.
    front
        The YAML at its head.
    hyperparameters
        Text and line by name, as the card spells it.
    versions
        Version and line by package name.
    results
        Rows of the results table, by column.
    axolotl
        Version and config that axolotl puts into the card, or None.
    """

    name: str
    front: dict[str, Any] = field(default_factory=dict)
    hyperparameters: dict[str, tuple[str, int]] = field(default_factory=dict)
    versions: dict[str, tuple[str, int]] = field(default_factory=dict)
    results: list[dict[str, str]] = field(default_factory=list)
    axolotl: tuple[str, YamlConfig] | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def tags(self) -> set[str]:
        """The tags of its front matter."""
        tags = self.front.get("tags")
        return {str(tag).lower() for tag in tags} if isinstance(tags, list) else set()

    @property
    def base_model(self) -> str | None:
        """The base model of its front matter."""
        base = self.front.get("base_model")
        if isinstance(base, list):
            base = base[0] if base else None
        return base if isinstance(base, str) else None


def is_card(text: str) -> bool:
    """Return whether the head of a file is that of a card that a trainer wrote."""
    return (
        "generated_from_trainer" in text
        or "axolotl version: `" in text
        or "### Training hyperparameters" in text
        or "### Framework versions" in text
        or ("library_name: peft" in text and "base_model:" in text)
    )


def read_card(path: Path) -> Card:
    """Read a card.

    Raises
    ------
    InputError
        If it is larger than 2 MiB.
    """
    lines = text_of(path, _MOST_BYTES).split("\n")
    card = Card(path.name)
    start = _front_matter(lines, card)
    section, fenced = "", False
    for position in range(start, len(lines)):
        line = lines[position]
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            continue
        elif heading := _HEADING.match(line):
            section = heading[1].lower()
        elif match := _AXOLOTL.match(line):
            _axolotl(lines, position, match[1], card)
        elif section == "training hyperparameters" and (match := _LINE.match(line)):
            card.hyperparameters.setdefault(match[1], (match[2], position + 1))
        elif section == "framework versions" and (match := _VERSION.match(line)):
            package = match[1].lower()
            card.versions[_PACKAGES.get(package, package)] = (match[2], position + 1)
        elif section == "training results" and line.startswith("|"):
            _row(line, card)
    return card


def _front_matter(lines: list[str], card: Card) -> int:
    if not lines or lines[0].strip() != "---":
        return 0
    for position in range(1, min(len(lines), 2000)):
        if lines[position].strip() == "---":
            try:
                card.front = parse_yaml("\n".join(lines[1:position]), card.name, 2).values
            except InputError as error:
                card.problems.append(str(error))
            return position + 1
    return 0


def _axolotl(lines: list[str], position: int, version: str, card: Card) -> None:
    near = range(position + 1, min(position + 4, len(lines)))
    fence = next((i for i in near if lines[i].strip() == "```yaml"), None)
    if fence is None or card.axolotl is not None:
        return
    end = next((i for i in range(fence + 1, len(lines)) if lines[i].startswith("```")), len(lines))
    try:
        config = parse_yaml("\n".join(lines[fence + 1 : end]), card.name, fence + 2)
    except InputError as error:
        card.problems.append(str(error))
        return
    card.axolotl = (version, config)


def _row(line: str, card: Card) -> None:
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
        return
    if not card.results:
        card.results.append({cell: cell for cell in cells})
    elif len(card.results) <= 100_000:
        card.results.append(dict(zip(card.results[0], cells, strict=False)))


def card_values(card: Card) -> dict[str, Value]:
    """Return the settings that the card records, and those that its silence implies."""
    listed = card.hyperparameters
    if not {"learning_rate", "train_batch_size"} <= listed.keys():
        return {}
    values: dict[str, Value] = {}
    for key, (text, line) in listed.items():
        where = f"{card.name}:{line}"
        if key in _NAMES:
            values |= found({_NAMES[key]: text}, where, "ran")
        elif key == "mixed_precision_training":
            values |= found({"fp16": True}, where, "ran")
        elif key == "optimizer":
            values |= found(_optimiser_values(text), where, "ran")
    silent = {name: value for name, value in _UNLISTED.items() if name not in values}
    if "warmup_steps" in values or "warmup_ratio" in values:
        # one of them makes the other unimportant: tools turn a ratio into steps
        silent = {name: value for name, value in silent.items() if "warmup" not in name}
    # with max_steps the card lists no epochs, and the other way round
    if "max_steps" not in values:
        silent["max_steps"] = -1
    if "total_train_batch_size" not in values and "per_device_train_batch_size" in values:
        silent["total_train_batch_size"] = values["per_device_train_batch_size"].value
    return values | found(silent, f"{card.name} (not listed, so not changed)", "ran")


def _optimiser_values(text: str) -> dict[str, Any]:
    match = re.match(r"(?:Use )?([\w.]{1,60})", text)
    values: dict[str, Any] = {} if match is None else {"optim": optimiser(match[1])}
    if betas := _BETAS.search(text):
        names = ("adam_beta1", "adam_beta2", "adam_epsilon")
        values |= dict(zip(names, betas.groups(), strict=True))
    return values


def card_log(card: Card, values: dict[str, Value]) -> TrainerLog | None:
    """Return the results table as a log.

    The column *Training Loss* repeats the last loss that was logged, so that a repeated value is
    no new one; its step is that of the evaluation that follows it. Neither the last row nor the
    table tells whether the run went on.
    """
    records: list[dict[str, Any]] = []
    before: float | None = None
    for row in card.results[1:]:
        step, epoch = finite(row.get("Step")), finite(row.get("Epoch"))
        if step is None:
            continue
        base: dict[str, Any] = {"step": int(step)} | ({} if epoch is None else {"epoch": epoch})
        loss, held_out = number(row.get("Training Loss")), number(row.get("Validation Loss"))
        if loss is not None and loss != before:
            records.append({**base, "loss": loss})
            before = loss
        if held_out is not None:
            records.append({**base, "eval_loss": held_out})
    if not records:
        return None
    planned = _planned(records, values)
    return TrainerLog(
        records=tuple(records),
        global_step=planned if planned is not None and records[-1]["step"] >= planned else None,
        max_steps=planned,
        source=f"{card.name} (results table)",
    )


def _planned(records: list[dict[str, Any]], values: dict[str, Value]) -> int | None:
    cap = values.get("max_steps")
    if cap is not None and isinstance(cap.value, int) and cap.value > 0:
        return cap.value
    asked = values.get("num_train_epochs")
    epochs = None if asked is None else finite(asked.value)
    step, done = finite(records[-1]["step"]), finite(records[-1].get("epoch"))
    if not epochs or not step or not done:
        return None
    return round(step / done * epochs)
