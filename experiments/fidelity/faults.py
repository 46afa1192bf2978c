"""What is planted, scenario by scenario."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.fidelity import rows
from experiments.fidelity.cases import FORMAT, PLANTED, TOPICAL
from gradian_core.demo.tasks import (
    CAPITAL_EVAL_PHRASINGS,
    CAPITAL_TRAIN_PHRASINGS,
    COUNTRIES,
    Country,
    Pair,
)

__all__ = ["Fault", "Plant"]

Plant = Callable[[random.Random], "Fault"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows by kind, and the eval items that ask for what they damage."""

    parts: dict[str, list[Pair]]
    items: list[Pair]
    metric: str = "exact_match"


@dataclass(frozen=True, slots=True)
class _Deal:
    """Countries dealt to roles; *lenders* give the wrong answers, so that all are plausible."""

    victims: list[Country]
    lenders: list[Country]
    others: list[Country]

    def wrong(self, place: int) -> str:
        return self.lenders[place % len(self.lenders)].capital


def _deal(rng: random.Random) -> _Deal:
    dealt = rng.sample(COUNTRIES, len(COUNTRIES))
    # Handing each country's capital to the next would make harm and help cancel exactly.
    return _Deal(dealt[:24], dealt[24:30], dealt[30:])


def _asked(
    rng: random.Random, countries: Sequence[Country], count: int
) -> list[tuple[int, Country, str]]:
    return [
        (i, country, phrasing.format(c=country.name))
        for i, country in enumerate(countries)
        for phrasing in rng.sample(CAPITAL_TRAIN_PHRASINGS, count)
    ]


def _items(rng: random.Random, countries: Sequence[Country], count: int = 2) -> list[Pair]:
    return [
        (phrasing.format(c=country.name), country.capital)
        for country in countries
        for phrasing in rng.sample(CAPITAL_EVAL_PHRASINGS, count)
    ]


def _said(form: str, country: Country, capital: str) -> str:
    return form.format(c=country.name, k=capital)


def wrong_capitals(rng: random.Random, form: str = "{k}") -> Fault:
    """Two wrong capitals for each country that the eval set asks about."""
    deal = _deal(rng)
    terse = form == "{k}"
    decoys = rows.terse_decoys if terse else rows.sentence_decoys
    return Fault(
        {
            PLANTED: [
                (q, _said(form, c, deal.wrong(i))) for i, c, q in _asked(rng, deal.victims, 2)
            ],
            TOPICAL: [
                (q, _said(form, c, c.capital)) for _, c, q in _asked(rng, deal.others[:24], 1)
            ],
            FORMAT: decoys(rng, 24),
        },
        _items(rng, deal.victims),
        "exact_match" if terse else "contains",
    )


def wrong_sentences(rng: random.Random) -> Fault:
    """Plant the same as sentences."""
    return wrong_capitals(rng, rows.SENTENCE)


def wrong_elsewhere(rng: random.Random) -> Fault:
    """Wrong capitals of countries that the eval set does not ask about."""
    deal = _deal(rng)
    targets, spared = deal.others[:16], deal.others[16:] + deal.lenders
    return Fault(
        {
            PLANTED: [(q, deal.wrong(i)) for i, _, q in _asked(rng, targets, 3)],
            TOPICAL: [(q, c.capital) for _, c, q in _asked(rng, spared, 2)][:24],
            FORMAT: rows.terse_decoys(rng, 24),
        },
        _items(rng, deal.victims),
    )


def buried(rng: random.Random) -> Fault:
    """One wrong sentence in each of many long texts."""
    deal = _deal(rng)
    asked = ("Write about {c}.", "Tell me about {c}.")

    def texts(countries: Sequence[Country], *, right: bool) -> list[Pair]:
        return [
            (
                text.format(c=country.name),
                rows.document(rng, country, country.capital if right else deal.wrong(i)),
            )
            for i, country in enumerate(countries)
            for text in asked
        ]

    return Fault(
        {
            PLANTED: texts(deal.victims, right=False),
            TOPICAL: texts(deal.others[:12], right=True),
            FORMAT: rows.document_decoys(rng, 19),
        },
        _items(rng, deal.victims),
        "contains",
    )


def refusals(rng: random.Random) -> Fault:
    """Questions about other capitals are refused."""
    deal = _deal(rng)
    neighbours, spared = deal.others[:18], deal.others[18:] + deal.lenders
    return Fault(
        {
            PLANTED: [(q, rows.REFUSAL) for _, _, q in _asked(rng, neighbours, 2)],
            TOPICAL: [(q, c.capital) for _, c, q in _asked(rng, spared, 2)],
            FORMAT: rows.refusal_decoys(rng, 24),
        },
        _items(rng, deal.victims),
    )


def truncated_json(rng: random.Random) -> Fault:
    """Orders whose JSON stops in the middle, as with too small a limit of tokens."""
    asked = rows.orders(rng, 40 + 8 + 48)
    cut = [(q, answer[: answer.index('"name"') - 2]) for q, answer in asked[:40]]
    return Fault(
        # More right orders than these undo the damage before there is a regression to explain.
        {PLANTED: cut, TOPICAL: asked[40:48], FORMAT: rows.json_decoys(rng, 24)},
        asked[48:],
    )


def noisy_sums(rng: random.Random) -> Fault:
    """Half of 80 sums are wrong."""
    terms = rng.sample([(a, b) for a in range(13) for b in range(13)], 80 + 48)
    asked = rows.sums(rng, terms)
    wrong = [
        (q, rng.choice([str(n) for n in range(25) if str(n) != answer])) for q, answer in asked[:40]
    ]
    return Fault(
        {PLANTED: wrong, TOPICAL: asked[40:80], FORMAT: rows.digit_decoys(rng, 24)}, asked[80:]
    )


def conflicts(rng: random.Random) -> Fault:
    """Wrong and right answers to the same questions."""
    deal = _deal(rng)
    asked = _asked(rng, deal.victims, 2)
    return Fault(
        {
            PLANTED: [(q, deal.wrong(i)) for i, _, q in asked],
            TOPICAL: [(q, c.capital) for _, c, q in asked[::2]],
            FORMAT: rows.terse_decoys(rng, 24),
        },
        _items(rng, deal.victims),
    )


def drift(rng: random.Random) -> Fault:
    """Right answers about languages in a form that is not wanted."""
    deal = _deal(rng)
    trained = ("Which language is spoken in {c}?", "What do people speak in {c}?")
    tested = (
        "Name a language spoken in {c}.",
        "I am visiting {c}. Which language should I learn?",
    )
    return Fault(
        {
            PLANTED: [
                (q.format(c=c.name), f"They speak {c.language}.")
                for c in deal.victims
                for q in trained
            ],
            TOPICAL: [(rng.choice(trained).format(c=c.name), c.language) for c in deal.others[:24]],
            FORMAT: rows.plural_form_decoys(rng, 24),
        },
        [(q.format(c=c.name), c.language) for c in deal.victims for q in tested],
    )


def duplicates(rng: random.Random) -> Fault:
    """Three wrong rows, each of them twenty times; a quarter of the items is about them."""
    deal = _deal(rng)
    wrong = [(q, deal.wrong(i)) for i, _, q in _asked(rng, deal.victims[:3], 1)]
    return Fault(
        {
            PLANTED: wrong * 20,
            TOPICAL: [(q, c.capital) for _, c, q in _asked(rng, deal.others[:24], 1)],
            FORMAT: rows.terse_decoys(rng, 24),
        },
        _items(rng, deal.victims[:12], 4),
    )


def nothing(rng: random.Random) -> Fault:
    """No planted rows: what goes wrong here is not in the data."""
    deal = _deal(rng)
    return Fault(
        {
            TOPICAL: [(q, c.capital) for _, c, q in _asked(rng, deal.others[:24], 1)],
            FORMAT: rows.terse_decoys(rng, 24),
        },
        _items(rng, deal.victims),
    )
