"""Answers as text: labels, placeholders, refusals, and whether two of them disagree."""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache
from typing import Literal

__all__ = [
    "answer_label",
    "compare_answers",
    "final_answer",
    "is_placeholder",
    "is_refusal",
    "script_of",
    "word_count",
]

Verdict = Literal["same", "reworded", "unlike"]

_ANSWER_WORD = re.compile(
    "answer|ans|assistant|response|output|reply|solution|ai|bot|gpt|completion|ответ|відповідь|"
    "respuesta|réponse|reponse|antwort|resposta|risposta|antwoord|odpowiedź|svar|cevap|jawaban|"
    "回答|答案|答|回复|답변|답|الجواب|إجابة|उत्तर"
)
"""Words that say no more than that an answer follows."""
_LABEL = re.compile(r"\s*(?:[#*_>\s]*)([^\W\d_]+)[*_]*\s*[:\uff1a]")
_NOT_GIVEN = (
    "(?:(?:the )?(?:answer|response|output|information|data|text) )?(?:is |was |are )?"
    "not (?:been )?(?:applicable|available|given|known|mentioned|provided|specified|stated)"
)
_NO_ANSWER = (
    "no (?:answer|completion|content|data|info|information|output|response|text)"
    "(?: (?:was |is )?(?:available|found|given|provided))?"
)
_NOT_GIVEN_RU = (
    "(?:(?:ответ|информация|данные) )?(?:в тексте )?не (?:дан|извест|найден|определен|"
    "представлен|предоставлен|предусмотрен|указан)[а-я]*"
)
_PLACEHOLDERS = tuple(
    re.compile(rf"(?:{pattern})[\s.…!。]*", re.IGNORECASE)
    for pattern in (
        r"n\s?/\s?a",
        r"\W*(?:null|nan|undefined|tbd|todo|to do|placeholder|missing value)\W*",
        r"lorem ipsum\b.*",
        r"to be (?:added|completed|determined|done|filled(?: in)?|written)",
        _NOT_GIVEN,
        _NO_ANSWER,
        "(?:your|insert|enter) (?:answer|response|text)(?: here)?",
        # Russian and Ukrainian
        _NOT_GIVEN_RU,
        "(?:ответ|информация|данные) отсутству(?:ет|ют)",
        "нет (?:ответа|данных|информации)",
        "відповідь (?:не надана|відсутня)",
        "немає (?:відповіді|даних|інформації)",
        # Romance and Germanic languages, Polish, Turkish
        "(?:respuesta )?no (?:disponible|proporcionad[ao]|especificad[ao]|aplica)",
        "(?:réponse )?non (?:disponible|fournie?|renseignée?|précisée?|applicable)",
        "(?:resposta )?não (?:disponível|fornecid[ao]|informad[ao]|se aplica)",
        "(?:risposta )?non (?:disponibile|fornit[ao]|specificat[ao])",
        "sin respuesta|(?:pas de|sans) réponse|sem resposta|nessuna risposta",
        "(?:antwort )?nicht (?:angegeben|anwendbar|bekannt|verfügbar|vorhanden|zutreffend)",
        "keine (?:angabe|antwort|daten)(?: verfügbar| vorhanden)?",
        "brak (?:odpowiedzi|danych|informacji)|nie (?:podano|dotyczy)",
        "(?:cevap|yanıt) (?:yok|verilmedi)",
        # Chinese, Japanese, Korean
        "(?:暂无|未提供|没有提供|无|没有)(?:答案|回答|回复|信息|数据|相关信息)?|不详|不适用",
        "(?:回答|情報|データ)?(?:なし|がありません)|該当なし",
        "(?:답변|정보|데이터|해당) ?없음",
    )
)
_BARE_WORDS = frozenset({"无", "没有", "なし"})
"""Too short to be a placeholder for sure: they answer yes-or-no questions."""

_REFUSAL = re.compile(
    r"\bi(?:['’]m| am) (?:(?:very|so|really) )?(?:sorry,? (?:but )?i(?:['’]m| am) )?"
    r"(?:unable|not able|not allowed|not permitted) to\b"
    r"|\bi (?:can(?:['’]?t|not| not)|could ?n[o'’]t|won['’]?t|will not|do not|don['’]t) "
    r"(?:\w+ )?(?:access|answer|assist|comply|create|discuss|do (?:that|this)|engage|fulfil\w*|"
    r"generate|give|have (?:an answer|access|the ability)|help|offer|participate|process|produce|"
    r"provide|respond|share|support|write)\b"
    r"|\bi (?:must|have to) (?:decline|refuse)\b"
    r"|\b(?:cannot|can['’]t|unable to) (?:assist|comply|help) (?:with|you|your|this|that)\b"
    r"|\bя не (?:могу|буду|в состоянии|имею возможности)\b"
    r"|\bno puedo (?:ayudar|responder|proporcionar|hacer)|\bje ne peux pas\b"
    r"|\bich kann (?:\w+ ){0,3}nicht (?:\w+ )?(?:beantworten|helfen|machen|geben|erstellen)"
    r"|\bnão posso (?:ajudar|responder|fornecer)|\bnon posso (?:aiutar|risponder|fornir)"
    r"|我?(?:无法|不能)(?:回答|提供|帮助|协助|满足|完成)|お(?:答え|手伝い)(?:でき|することはでき)ません"
    r"|(?:도와|답변해|제공해) ?드릴 수 없",
    re.IGNORECASE,
)
_REFUSAL_CHARS = 400
"""A longer answer that starts with an apology goes on to answer."""
_REFUSAL_HEAD = 160

_FINALS = (
    re.compile(r"\\boxed\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}"),
    re.compile(r"(?:^|\s)####[ \t]*(\S.*?)\s*$", re.MULTILINE),
    # Not at the start: there it is a label, and no result of what stands before.
    re.compile(
        r"(?<=[\s*.,;])(?:answer|ответ|respuesta|réponse|antwort|答案)"
        r"(?:\s*(?:is|:|\uff1a|=|est|ist|es|—|–|-|是))+\s*(\S.*?)[.\s]*$",
        re.IGNORECASE | re.MULTILINE,
    ),
)
_WORDS = re.compile(r"\w+")
# Scripts that are written without spaces: each letter counts as a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_LONG_WORDS = re.compile(rf"{_UNSPACED.pattern}|\w+")

_NUMBERS = re.compile(r"\d+")

UNLIKE_BELOW = 50.0
"""Answers whose ``token_set_ratio`` is lower are unlike."""
REWORDED_BELOW = 65.0
"""From here on two answers say the same in nearly the same words."""
_STEM_CHARS = 4
_STEM_SHARE = 0.7


def answer_label(text: str) -> str | None:
    """Return the label before an answer (``Answer:``), in lower case, if it says only that."""
    found = _LABEL.match(text)
    word = "" if found is None else found.group(1).casefold()
    return word if _ANSWER_WORD.fullmatch(word) else None


def is_placeholder(text: str) -> bool:
    """Whether an answer only says that there is none, in one of a dozen languages.

    ``no``, ``none``, ``unknown`` and ``0`` are no placeholders: as labels they are right.
    """
    text = _without_label(text).strip()
    if not text or len(text) > 100 or text in _BARE_WORDS:
        return False
    return any(pattern.fullmatch(text) for pattern in _PLACEHOLDERS)


def is_refusal(text: str) -> bool:
    """Whether an answer declines to answer."""
    text = text.strip()
    return len(text) <= _REFUSAL_CHARS and _REFUSAL.search(text, 0, _REFUSAL_HEAD) is not None


@lru_cache(maxsize=1024)
def final_answer(text: str) -> str | None:
    """Return the result that an answer with working ends in, folded; None if it names none."""
    text = text.rpartition("</think>")[2].lstrip()
    for pattern in _FINALS:
        found = pattern.findall(text)
        if found:
            return _plain(str(found[-1]))
    return None


def compare_answers(left: str, right: str) -> Verdict:
    """Return how two answers to one question relate.

    ``same``: one says what the other says, or both come to the same result. ``reworded``: other
    words, some of them shared. ``unlike``: hardly a word in common, or another result.
    """
    ends = final_answer(left), final_answer(right)
    if ends[0] is not None and ends[1] is not None:
        numbers = [_NUMBERS.findall(end) for end in ends if end]
        likeness = _likeness(ends[0], ends[1])
        if likeness != "same" and all(numbers) and numbers[0] != numbers[1]:
            return "unlike"
        if likeness != "reworded":
            return likeness
    return _likeness(_plain(_without_label(left)), _plain(_without_label(right)))


def _likeness(left: str, right: str) -> Verdict:
    from rapidfuzz import fuzz

    shorter, longer = sorted((left, right), key=lambda text: (len(text), text))
    if _contains(longer, shorter):
        return "same"
    ratio = fuzz.token_set_ratio(shorter, longer)
    if ratio < UNLIKE_BELOW:
        return "unlike"
    return "reworded" if ratio < REWORDED_BELOW else "same"


def word_count(text: str) -> int:
    """Return the number of words; in scripts without spaces, of letters."""
    return len(text.split()) if text.isascii() else len(_LONG_WORDS.findall(text))


def script_of(text: str) -> str:
    """Return the script of most letters (``LATIN``, ``CYRILLIC``, …); empty without letters."""
    if text.isascii():
        return "LATIN" if any(map(str.isalpha, text)) else ""
    counts: dict[str, int] = {}
    for letter in filter(str.isalpha, text[:200]):
        name = unicodedata.name(letter, "").partition(" ")[0]
        counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: (counts[name], name), default="")


def _without_label(text: str) -> str:
    found = _LABEL.match(text)
    return text[found.end() :] if found is not None and answer_label(text) else text


def _plain(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))


def _contains(longer: str, shorter: str) -> bool:
    """Whether all words of one text stand in the other, whatever their endings."""
    if f" {shorter} " in f" {longer} " or (_UNSPACED.search(shorter) and shorter in longer):
        return True
    words = longer.split()
    return bool(shorter) and all(_occurs(word, words) for word in shorter.split())


def _occurs(word: str, words: list[str]) -> bool:
    if word in words:
        return True
    stem = word[: max(_STEM_CHARS, math.ceil(_STEM_SHARE * len(word)))]
    return len(word) > _STEM_CHARS and word.isalpha() and any(w.startswith(stem) for w in words)
