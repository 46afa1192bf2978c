"""Uptake: whether training rows teach what the tuned model now says in place of right answers.

A fine-tune can make an answer wrong in two ways. It can teach the wrong answer, which then
stands in training rows; or it can displace the right one, and the model says something that no
row ever said. Only in the first case does the wrong answer point at the rows to blame.

What is looked for is the *span* of a wrong answer: without the words at its start and end that
it shares with the correct answer, and without those at either end that stand in the prompt or in
the correct answer. It counts where it stands in an answer of a row as whole consecutive words
(:func:`~gradian_core.attribution.words.words`). Three rules keep chance out:

* A span of less than :data:`SHORT` characters gives way to the whole wrong answer.
* A phrase that is still that short, or that stands in more than :data:`COMMON` of the rows, is
  *plain*: it counts only in rows that ask alike. That is where the prompt holds at least
  :data:`ALIKE` of the words that most of the prompts share to which the phrase was said.
* A wrong answer that only leaves something out has no span: only rows that answer exactly it
  count.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gradian_core.attribution.words import Phrases, words
from gradian_core.data.example import Example

__all__ = ["ALIKE", "COMMON", "SHORT", "TAUGHT", "Phrase", "Uptake", "WrongAnswer", "find_uptake"]

TAUGHT = 0.5
"""Uptake from which the wrong answers count as taught."""
SHORT = 4
"""Characters below which a phrase says too little on its own."""
COMMON = 0.1
"""Share of the training rows above which a phrase says too little on its own."""
ALIKE = 0.5
"""Share of the prompts' words that the prompt of a row must hold for a plain phrase."""

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """One item that got worse.

    Parameters
    ----------
    prompt, correct, said
        Its prompt, a correct answer, and what the tuned model said.
    """

    prompt: str
    correct: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """Something wrong that the tuned model says, and the rows that say it.

    Parameters
    ----------
    text
        Its words, folded.
    items
        Positions of the wrong answers that it was found in.
    rows
        Positions of the training rows that teach it, ascending.
    plain
        Whether it is so short or common that only rows count that ask alike.
    whole
        Whether only rows count that answer exactly this.
    """

    text: str
    items: tuple[int, ...]
    rows: tuple[int, ...]
    plain: bool
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Uptake:
    """How much of what the tuned model says wrongly was taught.

    Parameters
    ----------
    phrases
        In the order of their first items; each item belongs to one.
    n_rows
        Training rows that were searched.
    """

    phrases: tuple[Phrase, ...]
    n_rows: int

    @property
    def n_items(self) -> int:
        """Number of wrong answers."""
        return sum(len(phrase.items) for phrase in self.phrases)

    @property
    def n_taught(self) -> int:
        """Number of wrong answers that a training row teaches."""
        return sum(len(phrase.items) for phrase in self.phrases if phrase.rows)

    @property
    def share(self) -> float:
        """Uptake: the share of the wrong answers that a training row teaches."""
        return self.n_taught / self.n_items

    @property
    def taught(self) -> bool:
        """Whether that is enough to call them learned."""
        return self.share >= TAUGHT

    def teachers(self) -> tuple[int, ...]:
        """Return the rows that teach any, those that explain the most items first."""
        explained: Counter[int] = Counter()
        for phrase in self.phrases:
            for row in phrase.rows:
                explained[row] += len(phrase.items)
        return tuple(sorted(explained, key=lambda row: (-explained[row], row)))


def find_uptake(answers: Sequence[WrongAnswer], examples: Sequence[Example]) -> Uptake | None:
    """Look for wrong answers in the training data; see the module docstring for the rule.

    Takes time linear in the text of the rows, however many wrong answers there are.

    Parameters
    ----------
    answers
        What got worse; the positions in the result are places in it.
    examples
        The training rows.

    Returns
    -------
    Uptake or None
        None without any wrong answer.
    """
    if not answers:
        return None
    wanted: dict[tuple[Words, bool], list[int]] = defaultdict(list)
    for item, answer in enumerate(answers):
        wanted[_phrase(answer)].append(item)
    hits = _search(list(wanted), examples)
    plain = [
        not whole and (_length(phrase) < SHORT or len(rows) > COMMON * len(examples))
        for (phrase, whole), rows in zip(wanted, hits, strict=True)
    ]
    topics = {
        number: _shared([answers[i].prompt for i in items])
        for number, items in enumerate(wanted.values())
        if plain[number]
    }
    kept = _asking_alike(hits, topics, examples)
    return Uptake(
        phrases=tuple(
            Phrase(
                text=" ".join(phrase),
                items=tuple(items),
                rows=tuple(kept[number]),
                plain=plain[number],
                whole=whole,
            )
            for number, ((phrase, whole), items) in enumerate(wanted.items())
        ),
        n_rows=len(examples),
    )


def _phrase(answer: WrongAnswer) -> tuple[Words, bool]:
    """Return what to look for, and whether it must be a row's whole answer."""
    said, correct = words(answer.said), words(answer.correct)
    first, last = 0, len(said)
    shortest = min(len(said), len(correct))
    while first < shortest and said[first] == correct[first]:
        first += 1
    while last > first and len(said) - last < shortest - first and _ends_alike(said, correct, last):
        last -= 1
    if first == last:
        return tuple(said), True
    known = {*correct, *words(answer.prompt)}
    new = [i for i in range(first, last) if said[i] not in known]
    if new:
        first, last = new[0], new[-1] + 1
    span = tuple(said[first:last])
    return (tuple(said) if _length(span) < SHORT else span), False


def _ends_alike(said: Sequence[str], correct: Sequence[str], last: int) -> bool:
    return said[last - 1] == correct[last - 1 - len(said)]


def _length(phrase: Words) -> int:
    return sum(map(len, phrase))


def _search(wanted: Sequence[tuple[Words, bool]], examples: Sequence[Example]) -> list[array[int]]:
    """Return the rows of each phrase, before the rule for plain ones."""
    inside = [number for number, (_, whole) in enumerate(wanted) if not whole]
    exactly = {phrase: number for number, (phrase, whole) in enumerate(wanted) if whole}
    phrases = Phrases(wanted[number][0] for number in inside)
    hits = [array("q") for _ in wanted]
    for row, example in enumerate(examples):
        found: set[int] = set()
        for answer in _answers(example):
            spoken = words(answer)
            found.update(inside[i] for i in phrases.find(spoken))
            if exactly and (number := exactly.get(tuple(spoken))) is not None:
                found.add(number)
        for number in found:
            hits[number].append(row)
    return hits


def _shared(prompts: Sequence[str]) -> frozenset[str]:
    """Return the words that at least half of the prompts hold."""
    counts = Counter(word for prompt in prompts for word in set(words(prompt)))
    return frozenset(word for word, count in counts.items() if 2 * count >= len(prompts))


def _asking_alike(
    hits: Sequence[array[int]], topics: dict[int, frozenset[str]], examples: Sequence[Example]
) -> list[array[int]]:
    """Drop the rows of plain phrases whose prompt is about something else."""
    kept = [array("q") if number in topics else rows for number, rows in enumerate(hits)]
    asked: dict[int, list[int]] = defaultdict(list)
    for number in topics:
        for row in hits[number]:
            asked[row].append(number)
    for row in sorted(asked):
        prompt = {word for text in _questions(examples[row]) for word in words(text)}
        for number in asked[row]:
            topic = topics[number]
            if topic and len(topic & prompt) >= ALIKE * len(topic):
                kept[number].append(row)
    return kept


def _answers(example: Example) -> Iterator[str]:
    if example.text is not None:
        yield example.text
    yield from (turn.content for turn in example.turns if turn.role == "assistant")


def _questions(example: Example) -> Iterator[str]:
    if example.text is not None:
        yield example.text
    yield from (turn.content for turn in example.turns if turn.role not in {"assistant", "system"})
