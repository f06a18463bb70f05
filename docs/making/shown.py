"""What the page of each strategy shows: a program that cuts the sample, and what the code does not tell of itself."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SAMPLE", "SHOWN", "Shown", "Variant"]

SAMPLE = "docs/strategies/sample.md"


@dataclass(frozen=True)
class Variant:
    """Another picture of the strategy.

    Attributes:
        spec: what cuts.
        told: what is to be seen.
        text: the name of another text in `docs/strategies/`; the sample where it is empty.
    """

    spec: str
    told: str
    text: str = ""


@dataclass(frozen=True)
class Shown:
    """A strategy's page.

    Attributes:
        spec: what cuts the sample; without the model, where a language model is asked.
        source: the work that describes the strategy, as `docs/design.md` calls it; a program; or nothing.
        told: what is to be seen in the picture.
        answers: those of the language model, in order.
        extra: what the strategy needs beside its models.
        variants: further pictures.
    """

    spec: str
    source: str = ""
    told: str = ""
    answers: tuple[str, ...] = ()
    extra: str = ""
    variants: tuple[Variant, ...] = ()


SHOWN = {
    "agentic": Shown(
        "agentic:piece_size=30",
        "the chunking survey",
        "Titles are the model's; the places are those of the pieces that it named.",
        (
            '{"sections": [{"first": 1, "title": "The crossing", "reason": "What the ferry is."},'
            ' {"first": 4, "title": "Tickets and times", "reason": "What passengers need to know."},'
            ' {"first": 11, "title": "The other shore", "reason": "What is there."}]}',
        ),
    ),
    "auto": Shown(
        "auto:size=80",
        "the chunking survey",
        "The sample is Markdown by its name, and is cut as `markdown` does.",
        variants=(Variant("auto:size=400", "A document of at most `size` stays whole."),),
    ),
    "breakpoint": Shown(
        "breakpoint:amount=80",
        "Qu et al. (2024)",
        "One distance in five is over the 80th percentile; sentences end at full stops, so that a table is in one.",
        variants=(Variant("breakpoint:amount=80,max_size=80", "The same with a maximum."),),
    ),
    "cluster_semantic": Shown(
        "cluster_semantic:max_size=100,piece_size=20",
        "the Chroma report (2024)",
        "Pieces of 20 tokens, and the segmentation of them that holds the most similarity.",
    ),
    "code": Shown(
        "code:size=80",
        "the chunking survey",
        "The sample is no program: it is cut at blank lines, then between lines.",
        extra="structure",
        variants=(
            Variant(
                "code:size=60",
                "A program in Python: whole definitions, and where a class is cut, its methods.",
                "sample.py",
            ),
        ),
    ),
    "contextual": Shown(
        'contextual:chunker="markdown:size=100"',
        "",
        "The chunks are the other strategy's; what the model wrote of each stands beside it, and is embedded with it.",
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
        "Qu et al. (2024)",
        "Sentences that are near enough to each other are one chunk, wherever they stand; the others stay alone.",
        extra="clustering",
    ),
    "dual_semantic": Shown(
        "dual_semantic:k=0.5",
        "Toresan et al.",
        "A sentence joins where it is similar to every sentence of the chunk.",
    ),
    "fixed_sentences": Shown(
        "fixed_sentences:sentences=4",
        "Qu et al. (2024)",
        "Four sentences a chunk, whatever they say; a list item or a row of the table is one.",
        variants=(
            Variant("fixed_sentences:sentences=4,overlap=1", "Each chunk begins with the last sentence before it."),
        ),
    ),
    "fixed_token": Shown(
        "fixed_token:size=60",
        "LangChain's TokenTextSplitter",
        "Windows of 60 tokens, also through a word.",
        variants=(Variant("fixed_token:size=60,overlap=15", "Neighbours share 15 tokens: both colours."),),
    ),
    "hierarchical": Shown(
        "hierarchical:segmenter=texttiling:1:0.0,k=0.0,max_size=160",
        "Nguyen et al. (2025)",
        "Dotted lines are segments inside a chunk: each is searched by itself, and the chunk is what is found.",
    ),
    "html": Shown(
        "html:size=80",
        "the chunking survey",
        "The sample is no HTML: to a browser it is one text, which is cut between sentences.",
        extra="structure",
        variants=(
            Variant("html:size=80", "The beginning of the sample as a page.", "sample.html"),
            Variant(
                "html:size=80,content=text",
                "The same without its markup: a chunk has a span for each piece between tags.",
                "sample.html",
            ),
        ),
    ),
    "kamradt": Shown(
        "kamradt",
        "the Chroma report (2024)",
        "The 95th percentile leaves one cut in twenty: the strategy has no size.",
    ),
    "kamradt_modified": Shown(
        "kamradt_modified:size=120",
        "the Chroma report (2024)",
        "The greatest threshold with no chunk over 120 tokens: one passage decides for all.",
    ),
    "llm_semantic": Shown(
        "llm_semantic:piece_size=30",
        "the Chroma report (2024)",
        "The model named the pieces after which to split.",
        ('{"split_after": [2, 5, 9, 13]}',),
    ),
    "lumber": Shown(
        "lumber:window=120",
        "Duarte et al. (2024)",
        "The model named the paragraph at which the content shifts; the next question begins there.",
        ('{"first_changed": 3}', '{"first_changed": 3}', '{"first_changed": 3}', '{"first_changed": null}'),
    ),
    "markdown": Shown(
        "markdown:size=80",
        "the chunking survey",
        "A heading begins a chunk, and the chunk's metadata have the path of headings.",
        variants=(
            Variant(
                "markdown:size=40",
                "A table that is cut: its header is in each of its chunks, so that they have two spans.",
            ),
        ),
    ),
    "propositions": Shown(
        "propositions:passage_size=100",
        "Chen et al. (2024)",
        "What is searched is what the model wrote, at the right; what is found is the passage.",
        (
            '{"propositions": ["The ferry at Brennen crosses the lake six times a day.", "The kiosk sells tickets."]}',
            '{"propositions": ["Dogs stay on deck on the ferry.", "The ferry of 09:40 arrives at 10:00 every day."]}',
            '{"propositions": ["The rye bread is sold out by eight.", "Pike hunt among the reeds of the bay."]}',
            '{"propositions": ["Rowing boats can be hired at the bay."]}',
        ),
    ),
    "recursive": Shown(
        "recursive:size=60",
        "LangChain's RecursiveCharacterTextSplitter",
        "Blank lines first, then lines, then words; neighbours are merged up to 60 tokens.",
        variants=(Variant("recursive:size=60,overlap=25", "With an overlap, where whole pieces allow one."),),
    ),
    "sentence": Shown(
        "sentence:size=60",
        "the chunking survey",
        "Whole sentences, up to 60 tokens.",
        variants=(Variant("sentence:size=60,overlap_sentences=1", "Neighbours share a sentence."),),
    ),
    "single_linkage": Shown(
        "single_linkage:max_size=80,position_weight=0.2,stop=0.65",
        "Qu et al. (2024)",
        "The nearest sentences are joined first, neighbours or not: a chunk can have several spans.",
    ),
}
