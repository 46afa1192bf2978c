"""Near duplicates against brute force over all pairs."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest

from gradian_core.audit.samples import rows
from gradian_core.audit.shingles import shingle
from gradian_core.audit.similar import ALIKE, SHORTEST, near_duplicate_pairs

WORDS = [f"word{i}" for i in range(5000)]


def sentence(draw, n=60):
    return " ".join(draw.choices(WORDS, k=n))


def changed(draw, text, n):
    words = text.split()
    for place in draw.sample(range(len(words)), n):
        words[place] = "other"
    return " ".join(words)


def twins(n=60, seed=0):
    draw = random.Random(seed)
    items = []
    for i in range(n):
        prompt, answer = sentence(draw, 40), sentence(draw, 60)
        items += [
            {"prompt": prompt, "completion": answer},
            {"prompt": prompt, "completion": changed(draw, answer, i % 8)},
        ]
    draw.shuffle(items)
    return items


def by_hand(items):
    """All pairs by the exact similarity of word triples; for rows without common parts."""

    def triples(item):
        found = set()
        for text in item.values():
            words = text.lower().split()
            found |= {(*words[i : i + 3],) for i in range(max(len(words) - 2, 1))}
        return found

    sets = [triples(item) for item in items]
    for i, j in combinations(range(len(items)), 2):
        similarity = len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        if similarity >= ALIKE and items[i] != items[j]:
            yield i, j, similarity


def test_pairs_are_those_of_brute_force():
    items = twins()
    wanted = {(i, j): s for i, j, s in by_hand(items)}
    found = near_duplicate_pairs(rows(items=items))
    got = dict(
        zip(zip(found.left.tolist(), found.right.tolist(), strict=True), found.jaccard, strict=True)
    )
    assert set(got) <= set(wanted)
    assert len(wanted) >= 25
    assert len(got) >= 0.9 * len(wanted)
    for pair, similarity in got.items():
        assert similarity == pytest.approx(wanted[pair], abs=0.02)
    assert not found.sampled


def test_shared_boilerplate_is_not_similarity():
    draw = random.Random(3)
    head, tail = sentence(draw, 80), sentence(draw, 40)
    items = [
        {
            "system": sentence(random.Random(7), 50),
            "prompt": f"{head} {sentence(draw, 30)} {tail}",
            "completion": f"Sure, here you are: {sentence(draw, 20)}",
        }
        for _ in range(100)
    ]
    assert len(near_duplicate_pairs(rows(items=items))) == 0
    # the same rows with one of them almost repeated
    items.append({**items[0], "completion": items[0]["completion"] + " indeed"})
    found = near_duplicate_pairs(rows(items=items))
    assert found.left.tolist() == [0]
    assert found.right.tolist() == [100]


def test_exact_copies_and_short_rows_are_no_near_duplicates():
    draw = random.Random(1)
    long = {"prompt": sentence(draw), "completion": sentence(draw)}
    copies = near_duplicate_pairs(rows(items=[long, dict(long), dict(long)]))
    assert len(copies) == 0
    assert copies.looked_at == 1
    short = [
        {"prompt": "Translate the word jewfish into Warrungu please", "completion": word}
        for word in ("jidawolo", "golga")
    ]
    assert near_duplicate_pairs(rows(items=short)).looked_at == 0


def test_text_without_spaces():
    draw = random.Random(2)
    letters = [chr(0x4E00 + i) for i in range(2000)]
    text = "".join(draw.choices(letters, k=120))
    items = [{"text": text}, {"text": text[:-2] + "一二"}, {"text": text[60:] * 2}]
    found = near_duplicate_pairs(
        rows(items=[*items, {"text": "".join(draw.choices(letters, k=120))}])
    )
    assert list(zip(found.left.tolist(), found.right.tolist(), strict=True)) == [(0, 1)]


def test_between_two_sets_only_pairs_across_count():
    items = twins(20, seed=5)
    train, evals = rows(items=items[:30]), rows(items=items[30:])
    within = near_duplicate_pairs(rows(items=items))
    across = near_duplicate_pairs(train, evals)
    pairs = zip(within.left.tolist(), within.right.tolist(), strict=True)
    wanted = {(a, b - 30) for a, b in pairs if a < 30 <= b}
    assert set(zip(across.left.tolist(), across.right.tolist(), strict=True)) == wanted
    assert wanted
    # a row that is exactly the same in both is the business of another check
    assert len(near_duplicate_pairs(train, train)) == len(near_duplicate_pairs(train)) * 2


def test_every_row_of_a_large_group_is_found():
    draw = random.Random(9)
    text = sentence(draw, 100)
    items = [{"text": f"{text} {i}"} for i in range(100)]
    items += [{"text": sentence(draw, 50)} for _ in range(1500)]
    found = near_duplicate_pairs(rows(items=items))
    assert set(found.left.tolist()) | set(found.right.tolist()) == set(range(100))
    assert len(found) < 1000


def test_a_text_that_a_tenth_of_the_rows_begin_with_is_a_template():
    draw = random.Random(4)
    text = sentence(draw, 100)
    items = [{"text": f"{text} {sentence(draw, 30)}"} for _ in range(30)]
    items += [{"text": sentence(draw, 100)} for _ in range(270)]
    assert len(near_duplicate_pairs(rows(items=items))) == 0
    # a twentieth is no template; 9 in 10 words of two such rows are the same
    items = [{"text": f"{text} {sentence(draw, 5)}"} for _ in range(15)]
    items += [{"text": sentence(draw, 100)} for _ in range(285)]
    assert len(near_duplicate_pairs(rows(items=items))) > 15


def test_no_rows_to_compare():
    for items in ([{"text": "short"}], [{"prompt": "", "completion": ""}] * 2):
        assert len(near_duplicate_pairs(rows(items=items))) == 0


def test_more_rows_than_the_limit_are_sampled(monkeypatch):
    monkeypatch.setattr("gradian_core.audit.similar.LARGEST", 40)
    facts = rows(items=twins(50))
    found = near_duplicate_pairs(facts)
    assert found.sampled
    assert found.of == 40
    again = near_duplicate_pairs(facts)
    assert np.array_equal(found.left, again.left)


def test_triples_of_rows():
    examples = list(rows(items=[{"text": "a b c d"}, {"text": "A  b\nc e"}]).rows)
    shingles = shingle(examples, examples)
    assert shingles.offsets.tolist() == [0, 2, 4]
    assert len(shingles.of(0) & shingles.of(1)) == 1
    assert shingles.take(np.array([1])).of(0) == shingles.of(1)
    short = list(rows(items=[{"prompt": "a", "completion": "b c"}]).rows)
    assert shingle(short, short).offsets.tolist() == [0, 2]


def test_the_same_in_every_process():
    program = (
        "from gradian_core.audit.samples import rows\n"
        "from gradian_core.audit.similar import near_duplicate_pairs as near\n"
        "text = ' '.join(f'w{i * i % 97}' for i in range(60))\n"
        "found = near(rows(items=[{'text': f'{text} {i}'} for i in range(5)]))\n"
        "print(found.left.tolist(), found.right.tolist(), found.jaccard.tolist())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_the_shortest_row_that_is_looked_at():
    def row(n):
        return {"text": " ".join(f"u{n}x{i}" for i in range(n))}

    facts = rows(items=[row(SHORTEST + 1), row(SHORTEST + 2)])
    assert near_duplicate_pairs(facts).looked_at == 1
