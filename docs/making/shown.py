"""The example on the page of each chunker, and when to use the chunker."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SAMPLE", "SHOWN", "Shown", "Variant"]

SAMPLE = "docs/reference/chunkers/sample.md"


@dataclass(frozen=True)
class Variant:
    """A further picture of a chunker.

    Attributes:
        spec: the chunker as a string.
        seen: what the picture shows.
        text: a text in the folder of `SAMPLE`; the sample where it is empty.
    """

    spec: str
    seen: str
    text: str = ""


@dataclass(frozen=True)
class Shown:
    """The page of a chunker.

    Attributes:
        spec: the chunker that cuts the sample, without its language model.
        when: when to use the chunker.
        seen: what the picture shows.
        source: the work that describes the chunker, as `docs/concepts.md` names it; a program; or nothing.
        answers: the language model's answers, in order.
        extra: the extra that the chunker needs beside its models.
        variants: further pictures.
    """

    spec: str
    when: str
    seen: str
    source: str = ""
    answers: tuple[str, ...] = ()
    extra: str = ""
    variants: tuple[Variant, ...] = ()


SHOWN = {
    "agentic": Shown(
        "agentic:piece_size=30",
        "readers need titled sections, and a call to a language model for each window is affordable.",
        "the model's titles; the places are those of the pieces that it named.",
        "the chunking survey",
        (
            '{"sections": [{"first": 1, "title": "The crossing", "reason": "What the ferry is."},'
            ' {"first": 4, "title": "Tickets and times", "reason": "What passengers need to know."},'
            ' {"first": 11, "title": "The other shore", "reason": "What is there."}]}',
        ),
    ),
    "auto": Shown(
        "auto:size=80",
        "a folder mixes Markdown, HTML, code and prose.",
        "the sample is Markdown by its name, and is cut as `markdown` does.",
        "the chunking survey",
        variants=(Variant("auto:size=400", "a document of at most `size` stays whole."),),
    ),
    "breakpoint": Shown(
        "breakpoint:amount=80",
        "prose changes topic without headings; set `size`, or a chunk can be any length.",
        "one distance in five is over the 80th percentile; the table has no full stops and is one sentence.",
        "Qu et al. (2024)",
        variants=(Variant("breakpoint:amount=80,size=80", "the same with a maximum."),),
    ),
    "cluster_semantic": Shown(
        "cluster_semantic:size=100,piece_size=20",
        "meaning should decide the cuts, under a maximum and at linear cost.",
        "pieces of 20 tokens, in the segmentation with the most similarity.",
        "the Chroma report (2024)",
    ),
    "code": Shown(
        "code:size=80",
        "documents are programs in C, C++, Go, Java, JavaScript, Python, Rust or TypeScript.",
        "the sample is no program: it is cut at blank lines, then between lines.",
        "the chunking survey",
        extra="structure",
        variants=(
            Variant(
                "code:size=60",
                "whole definitions; a class that is cut, by its methods.",
                "sample.py",
            ),
        ),
    ),
    "contextual": Shown(
        'contextual:chunker="markdown:size=100"',
        "chunks are hard to understand alone, and a call to a language model for each chunk is affordable.",
        "the chunks of `markdown`; the model's sentence is embedded with each.",
        "",
        (
            '{"context": "What the ferry at Brennen is, and how long it takes."}',
            '{"context": "What passengers do before they board the ferry."}',
            '{"context": "When the ferry leaves and arrives."}',
            '{"context": "What there is at the landing on the other shore."}',
            '{"context": "Who crosses, and what can be done at the bay."}',
        ),
    ),
    "dbscan": Shown(
        "dbscan:eps=0.45,position_weight=0.4",
        "one topic returns at several places of a short document; time is quadratic.",
        "near sentences are one chunk, also when far apart; the others stay alone.",
        "Qu et al. (2024)",
        extra="clustering",
    ),
    "dual_semantic": Shown(
        "dual_semantic:k=0.5,size=100,size_of=text",
        "answers are a phrase or a sentence, so that small chunks on one topic win.",
        "a sentence joins if it is similar to every sentence of the chunk.",
        "Toresan et al.",
    ),
    "fixed_sentences": Shown(
        "fixed_sentences:sentences=4",
        "you need the baseline of Qu et al., or a stated number of sentences or chunks.",
        "four sentences a chunk; a list item or a row of the table is one.",
        "Qu et al. (2024)",
        variants=(
            Variant(
                "fixed_sentences:sentences=4,overlap=1",
                "each chunk begins with the last sentence before it.",
            ),
        ),
    ),
    "fixed_token": Shown(
        "fixed_token:size=60",
        "every chunk must have the same size, and cuts inside words do no harm.",
        "windows of 60 tokens, also through a word.",
        "LangChain's TokenTextSplitter",
        variants=(
            Variant("fixed_token:size=60,overlap=15", "neighbours share 15 tokens: both colours."),
        ),
    ),
    "hierarchical": Shown(
        "hierarchical:window=1,deviations=0.0,k=0.0,size=160",
        "search needs small parts and the reader needs the whole passage around them.",
        "dotted lines are segments: each is searched alone, and its chunk is found.",
        "Nguyen et al. (2025)",
    ),
    "html": Shown(
        "html:size=80",
        "documents are web pages.",
        "the sample is no HTML: one text, cut between sentences.",
        "the chunking survey",
        extra="structure",
        variants=(
            Variant(
                "html:size=80",
                "the beginning of the sample as a page: a span for each piece between tags.",
                "sample.html",
            ),
        ),
    ),
    "kamradt": Shown(
        "kamradt",
        "you reproduce published results; its chunks have any length, and embedders cut off more than half of them.",
        "the 95th percentile leaves one cut in twenty.",
        "the Chroma report (2024)",
    ),
    "kamradt_modified": Shown(
        "kamradt_modified:size=120",
        "you want `kamradt` with chunks under a size.",
        "the greatest threshold with no chunk over 120 tokens; one passage decides for all.",
        "the Chroma report (2024)",
    ),
    "llm_semantic": Shown(
        "llm_semantic:piece_size=30",
        "a language model should decide the cuts, in one call for each window.",
        "the model named the pieces after which to split.",
        "the Chroma report (2024)",
        ('{"split_after": [2, 5, 9, 13]}',),
    ),
    "lumber": Shown(
        "lumber:window=120",
        "long narratives shift topic between paragraphs.",
        "the model named the paragraph where the content shifts; the next question begins there.",
        "Duarte et al. (2024)",
        (
            '{"first_changed": 3}',
            '{"first_changed": 3}',
            '{"first_changed": 3}',
            '{"first_changed": null}',
        ),
    ),
    "markdown": Shown(
        "markdown:size=80",
        "documents are Markdown: sections and tables stay whole, and it costs no more than `recursive`.",
        "a heading begins a chunk, and the metadata have the path of headings.",
        "the chunking survey",
        variants=(
            Variant(
                "markdown:size=40",
                "a table that is cut: its header is in each chunk, which then has two spans.",
            ),
        ),
    ),
    "propositions": Shown(
        "propositions:passage_size=100",
        "questions ask for single facts, and a call to a language model for each passage is affordable.",
        "the model's facts, at the right, are searched; their passage is found.",
        "Chen et al. (2024)",
        (
            '{"propositions": ["The ferry at Brennen crosses the lake six times a day.", "The kiosk sells tickets."]}',
            '{"propositions": ["Dogs stay on deck on the ferry.", "The ferry of 09:40 arrives at 10:00 every day."]}',
            '{"propositions": ["The rye bread is sold out by eight.", "Pike hunt among the reeds of the bay."]}',
            '{"propositions": ["Rowing boats can be hired at the bay."]}',
        ),
    ),
    "recursive": Shown(
        "recursive:size=60",
        "you start: it needs no model, and at 50 to 200 tokens few chunkers beat it.",
        "blank lines first, then lines, then words; neighbours merge up to 60 tokens.",
        "LangChain's RecursiveCharacterTextSplitter",
        variants=(
            Variant(
                "recursive:size=60,overlap=25", "with an overlap, where whole pieces allow one."
            ),
        ),
    ),
    "sentence": Shown(
        "sentence:size=60",
        "chunks must consist of whole sentences, under a maximum.",
        "whole sentences, up to 60 tokens.",
        "the chunking survey",
        variants=(Variant("sentence:size=60,overlap_sentences=1", "neighbours share a sentence."),),
    ),
    "single_linkage": Shown(
        "single_linkage:size=80,position_weight=0.2,stop=0.65",
        "one topic returns at several places of a short document, and chunks need a maximum; time is quadratic.",
        "the nearest sentences join first, neighbours or not; a chunk can have several spans.",
        "Qu et al. (2024)",
    ),
}
