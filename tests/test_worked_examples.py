"""The two worked examples of Qu et al. (2024), figures 6 and 7: what fixed sizes and structure make of them.

The sentences are written for these tests: as many as in the figures, on the same subjects, in documents and sections
of the same lengths. A line is a sentence, as in the figures, where the first of each document is its title.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from chunkcore import Chunker
from chunkcore.chunkers import FixedSentences, Markdown, Recursive

LINES = r"regex:\n"

STITCHED = (
    (
        "Tom Muecke",
        "Thomas Muecke, born in August 1963, was an American football quarterback.",
        "As a student he played football at Baylor University.",
        "Later the Houston Oilers and the Calgary Stampeders had him on their teams.",
    ),
    (
        "Jonathan Losos",
        "Losos is an American biologist who studies how organisms evolve.",
        "Hundreds of papers by other biologists cite his own.",
    ),
    (
        "1883 Boston Beaneaters season",
        "It was the thirteenth season of the baseball club from Boston.",
        "For the third time the Beaneaters won the pennant of the National League.",
        "Most historians say that the team got its nickname in this season.",
    ),
    (
        "Name binding",
        "A programming language binds a name when it associates the name with data or code.",
        "An identifier that is bound to an object is a reference to the object.",
        "Machine languages know no identifiers, but programming languages bind them for the programmer.",
        "Binding goes together with scope, which says where a name is bound to which object.",
    ),
)
SECTIONS = (
    (
        "Interact Home Computer",
        "The Interact Home Computer is a rare American home computer of 1978.",
        "In shops its name was Interact Model One Home Computer.",
        "Rick Barnich and a few others designed the first Interact Model One.",
    ),
    (
        "Interact Electronics Inc was a private company that investors from Michigan had paid for.",
        "Ken Lochner, its president, had founded Interact Electronics Inc.",
        "He did so after another company of his, which sold time on large computers, had done well.",
    ),
    (
        "A few thousand Interacts were sold before the company was bankrupt.",
        "A liquidator from Barrington sold most of them.",
        "The computer was first shown to buyers at the Consumer Electronics Show.",
        "After that most buyers ordered theirs by mail.",
    ),
    (
        "The best known application of the Interact was perhaps a sign for shop windows.",
        "A shop could type any message that it wanted its screen to show.",
        "Most of the time, though, the machine was used for games such as Showdown.",
        "Some customers had the Interact control everything from lights to locks.",
    ),
)


@dataclass(frozen=True)
class Example:
    """Sections of sentences, and the chunks that the figure prints for four sentences a chunk, by their numbers."""

    sections: tuple[tuple[str, ...], ...]
    printed: tuple[tuple[int, ...], ...]

    @property
    def sentences(self) -> list[str]:
        return [sentence for section in self.sections for sentence in section]

    @property
    def plain(self) -> str:
        return "\n".join(self.sentences)

    @property
    def paragraphs(self) -> str:
        return "\n\n".join("\n".join(section) for section in self.sections)

    @property
    def markdown(self) -> str:
        return "\n\n".join(f"# Section {number}\n\n" + "\n".join(each) for number, each in enumerate(self.sections))

    @property
    def by_section(self) -> list[list[int]]:
        numbers = iter(range(1, 1 + len(self.sentences)))
        return [[next(numbers) for _ in section] for section in self.sections]

    def numbers(self, chunker: Chunker, text: str) -> list[list[int]]:
        """The sentences of each chunk, by their numbers; each is whole."""
        found = [
            [number for number, sentence in enumerate(self.sentences, 1) if sentence in chunk]
            for chunk in chunker.split_text(text)
        ]
        assert sorted(number for chunk in found for number in chunk) == list(range(1, 1 + len(self.sentences)))
        return found

    def strays(self, chunks: list[list[int]]) -> list[int]:
        """The sentences that stand in a chunk which holds more of another section."""
        home = {number: place for place, section in enumerate(self.by_section) for number in section}
        strays: list[int] = []
        for chunk in chunks:
            homes = [home[number] for number in chunk]
            most = max(sorted(set(homes)), key=homes.count)
            strays += [number for number in chunk if home[number] != most]
        return sorted(strays)


EXAMPLES = {
    "figure 6": Example(STITCHED, ((1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15, 16))),
    "figure 7": Example(SECTIONS, ((1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15))),
}
each_example = pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))


@each_example
@pytest.mark.parametrize("options", [{"sentences": 4}, {"chunks": 4}], ids=str)
def test_the_fixed_size_chunker_cuts_as_printed(example: Example, options: dict[str, int]) -> None:
    chunks = example.numbers(FixedSentences(**options, splitter=LINES), example.plain)
    assert chunks == [list(chunk) for chunk in example.printed]


@each_example
def test_and_carries_the_first_sentence_of_two_sections_into_the_chunk_before(example: Example) -> None:
    """What the paper calls an error that propagates: the figures mark the same two sentences."""
    assert example.strays(example.numbers(FixedSentences(sentences=4, splitter=LINES), example.plain)) == [8, 12]


@each_example
def test_blank_lines_between_sections_are_enough_for_recursive(example: Example) -> None:
    """The paper: splitting into sections first solves the issue. Two that fit a chunk together stay together."""
    size = max(len("\n".join(section).split()) for section in example.sections)
    first, second, *others = example.by_section
    expected = [first + second, *others] if example.sections is STITCHED else example.by_section
    assert example.numbers(Recursive(size=size, counter="words"), example.paragraphs) == expected


@each_example
def test_headings_are_enough_for_markdown(example: Example) -> None:
    assert example.numbers(Markdown(size=75, counter="words"), example.markdown) == example.by_section
