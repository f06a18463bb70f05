"""How well words cut to their first letters stand for their families, in several languages.

python -m integration_tests.benchmarks.word_forms en de ru hi ar fr es fi tr pl
(pip install simplemma wordfreq PyStemmer)

Words are the 40,000 most frequent without the first 200; families are simplemma's lemmas. "Found" is the
share of a family's other occurrences whose key is a word's key, "own" the share of a key's occurrences that are of the
word's family; both are means over words.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable

from chunkcore.retrieval import word_keys

SNOWBALL = {
    "ar": "arabic",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "pl": "polish",
    "ru": "russian",
    "tr": "turkish",
}


def main() -> None:
    import Stemmer
    import wordfreq
    from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory

    dictionaries = DefaultDictionaryFactory()
    for language in sys.argv[1:]:
        words = [each.casefold() for each in wordfreq.top_n_list(language, 40_000)]
        words = [each for each in dict.fromkeys(words) if each.isprintable() and word_keys(each) == [each]][200:]
        often = {word: wordfreq.word_frequency(word, language) for word in words}
        lemmas = dictionaries.get_dictionary(language)
        family = {word: str(lemmas.get(word) or lemmas.get(word.capitalize()) or word).casefold() for word in words}
        forms: dict[str, Callable[[str], str]] = {"whole": str}
        forms |= {f"first{n}": lambda word, n=n: word_keys(word, f"first{n}")[0] for n in (3, 4, 5, 6, 7)}
        if SNOWBALL.get(language) in Stemmer.algorithms():
            forms["snowball"] = Stemmer.Stemmer(SNOWBALL[language]).stemWord
        for name, form in forms.items():
            found, own = shares(words, often, family, form)
            print(f"{language} {name:8} found {100 * found:5.1f} own {100 * own:5.1f}")


def shares(
    words: list[str], often: dict[str, float], family: dict[str, str], form: Callable[[str], str]
) -> tuple[float, float]:
    keys = {word: form(word) for word in words}
    of_key, of_family, of_both = defaultdict(float), defaultdict(float), defaultdict(float)
    members: defaultdict[str, int] = defaultdict(int)
    for word in words:
        of_key[keys[word]] += often[word]
        of_family[family[word]] += often[word]
        of_both[keys[word], family[word]] += often[word]
        members[family[word]] += 1
    found = [
        (of_both[keys[word], family[word]] - often[word]) / (of_family[family[word]] - often[word])
        for word in words
        if members[family[word]] > 1
    ]
    own = [of_both[keys[word], family[word]] / of_key[keys[word]] for word in words]
    return sum(found) / max(1, len(found)), sum(own) / len(own)


if __name__ == "__main__":
    main()
