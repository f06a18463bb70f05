"""In place of a model that writes questions: functions of what it is shown, that write good ones and bad ones."""

from __future__ import annotations

import json
from hashlib import blake2b

# Ninety sentences, no two of them alike, of which a document is made.
SENTENCES = [
    f"The {animal} of {town} {deed} on day {day}."
    for day, (animal, town, deed) in enumerate(
        (animal, town, deed)
        for animal in ("fox", "dog", "owl", "eel", "ram")
        for town in ("Arbon", "Bregenz", "Chur", "Davos", "Elm", "Flims")
        for deed in ("slept", "sang", "swam")
    )
]


def passage(messages) -> str:
    """What stands between the two lines of marks."""
    asked = messages[1]["content"]
    mark = asked.partition("\n")[0]
    return asked.split(f"{mark}\n")[1].removesuffix("\n")


def earlier(messages) -> list[str]:
    listed = messages[1]["content"].rpartition("Asked before:\n")[2].split("\n")
    return [each.removeprefix("- ") for each in listed if each != "- none"]


def reply(question: str, *excerpts: str) -> str:
    return json.dumps({"oath": "I will not.", "question": question, "excerpts": list(excerpts)})


def lines_of(text: str) -> list[str]:
    """The whole sentences of a passage."""
    return [each for each in text.split("\n") if each in SENTENCES] or [text.split(". ")[0] + "."]


def honest(messages, schema) -> str:
    """The first sentence of the passage that was not asked about, copied."""
    for line in lines_of(passage(messages)):
        question = f"What is told of this: {' '.join(line.split()[::-1])}"
        if question not in earlier(messages):
            return reply(question, line)
    return reply("Is there anything else at all?", "nothing")


def mixed(messages, schema) -> str:
    """By chance a right excerpt, one with other white space, a changed one, an invented one, or no answer at all."""
    lines = lines_of(passage(messages))
    line = lines[len(earlier(messages)) % len(lines)]
    turn = blake2b(json.dumps(list(messages)).encode(), digest_size=1).digest()[0] % 5
    excerpt = [line, line.replace(" ", " \n\t"), line.replace("The", "Thy"), "Foxes fly at night.", ""][turn]
    return reply(f"Number {turn}: {' '.join(line.split()[::-1])} ({len(earlier(messages))})", excerpt)
