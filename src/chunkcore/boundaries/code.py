"""Blocks of source code: definitions by tree-sitter's grammars, or parts between blank lines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chunkcore.boundaries import Block, Titles, between, lines, one_line, pairs, words
from chunkcore.lazy import needed
from chunkcore.spans import Numbers, Range, as_table

if TYPE_CHECKING:
    from tree_sitter import Language, Node


_JSON = re.compile(
    r'(?s)"(?:[^"\\]|\\.)*(?:"|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<part>,)'
)
_XML = re.compile(
    r"(?s)<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[?!][^>]*>"
    r"|(?P<close></[^>]*>)|(?P<part><[^\s<>/][^<>]*/>)|(?P<open><[^\s<>/][^<>]*>)"
)
_MARKS = {"json": _JSON, "xml": _XML}
# With the comments above it; comments alone match, too, so that each is read once.
_SECTION = re.compile(r"(?m)^(?:[^\S\n]*[#;].*\n)*(?P<head>[ \t]*\[.*\][ \t]*(?:[#;].*)?$)?")
_WITH_SECTIONS = ("toml", "ini")
_YAML_DOCUMENT = re.compile(r"(?m)^---(?!\S)")
_BLANK = re.compile(r"(?:\r\n?|\n)(?:[ \t\f]*(?:\r\n?|\n))+")
# Comments and annotations.
_LEADS = re.compile(r"//|/\*|\*/|\* |--|;|[!']\s|#[\s!']|@\w[^;{]*$|\[[^\]]*\]$")
_CLOSES = re.compile(
    r"[\])}]|</|(?:end|fi|done|esac|else|elif|elsif|except|catch|finally|rescue|ensure)\b"
)
_WHITE = re.compile(r"\s*")
_ALONE = re.compile(r"\{[ \t]*$")
_OPENED = (",", "[", "{", "(", ";", "}")


def nested_blocks(text: str, language: str) -> list[Block]:
    r"""The blocks of a text that has no grammar here; each has its inner blocks. They cover all but white space.

    Each level of blocks is read again from its text when it is cut: linear time a level.

    >>> text = '{"plans": [{"fee": 1},{"fee": 2}]}'
    >>> outer = nested_blocks(text, "json")[0]
    >>> [text[part.start : part.end] for part in outer.parts()[1].parts()]
    ['"plans": [', '{"fee": 1},', '{"fee": 2}]}']
    """
    whole = 0, len(text)
    marks = _MARKS.get(language)
    if marks:
        return _blocks(text, whole, _cuts(text, whole, marks, 0), partial(_elements, marks))
    cuts = []
    if language in _WITH_SECTIONS:
        cuts = [section.start() for section in _SECTION.finditer(text) if section["head"]]
    elif language == "yaml":
        cuts = [document.start() for document in _YAML_DOCUMENT.finditer(text, 1)]
    return _blocks(text, whole, cuts, _outer) if cuts else _outer(text, whole)


def _outer(text: str, around: Range) -> list[Block]:
    """The parts between blank lines, but those that begin with white space or a closing bracket."""
    cuts = [gap.end() for gap in _BLANK.finditer(text, *around)]
    outer = [cut for cut in cuts if cut < around[1] and text[cut] not in " \t}])"]
    return _blocks(text, around, outer, _indented)


def _blocks(
    text: str,
    around: Range,
    cuts: Sequence[int],
    parts: Callable[[str, Range], Sequence[Block]],
    *,
    has_head: bool = False,
) -> list[Block]:
    blocks = []
    for number, kept in enumerate(between(text, around, cuts)):
        if kept:
            leads = has_head and number == 0
            finder = _line_blocks if leads else parts
            inner = partial(finder, text, kept)
            blocks.append(Block(*kept, whole=True, leads=leads, parts=inner))
    return blocks


_STEPS: dict[str | None, int] = {"open": 1, "close": -1}


def _cuts(text: str, around: Range, marks: re.Pattern[str], level: int) -> list[int]:
    """Where elements within so many others end; within one, first where its opening mark ends."""
    # In JSON a comma ends a child.
    ends = ("part",) if level and marks is _JSON else ("part", "close")
    cuts: list[int] = []
    lowest = -len(text) if level else 0
    depth = 0
    for mark in marks.finditer(text, *around):
        kind = mark.lastgroup
        depth = max(lowest, depth + _STEPS.get(kind, 0))
        opens = kind == "open" and level and not cuts
        if depth == level and (opens or kind in ends):
            cuts.append(mark.end())
    return cuts


def _elements(marks: re.Pattern[str], text: str, around: Range) -> list[Block]:
    """The head of an element, up to its opening mark, and its children; the last one has the closing mark."""
    cuts = _cuts(text, around, marks, 1)
    if marks is _XML and len(cuts) > 1:  # the closing tag stays with the last child
        cuts.pop()
    if not cuts:
        return _line_blocks(text, around)
    return _blocks(text, around, cuts, partial(_elements, marks), has_head=True)


def _indented(text: str, around: Range) -> list[Block]:
    """The paragraphs of a range at its least indent; else its lines at that indent, with those deeper below them."""
    rows = lines(text, around)
    begins = _beginnings(text, rows)
    blanks = {gap.end() for gap in _BLANK.finditer(text, *around)}
    cuts = [place for place in begins[1:] if place in blanks] or begins[1:]
    if cuts:
        return _blocks(text, around, cuts, _indented)
    outer = _indent(text, rows[0])
    deeper = [row for row in rows if _indent(text, row) > outer]
    body = _beginnings(text, deeper)
    if not body:
        return _line_blocks(text, around)
    return _blocks(text, around, body, _indented, has_head=True)


def _indent(text: str, row: Range) -> int:
    return _first_word(text, row[0]) - row[0]


def _beginnings(text: str, rows: Sequence[Range]) -> list[int]:
    """Where the lines of the least indent begin that close nothing, open no block and follow no comment."""
    indents = [_indent(text, row) for row in rows]
    least = min(indents, default=0)
    begins = []
    before = ""
    for (start, end), indent in zip(rows, indents, strict=True):
        line = text[start:end].strip()
        opens = _ALONE.match(line) and before and not before.endswith(_OPENED)
        if indent == least and not (opens or _CLOSES.match(line) or _LEADS.match(before)):
            begins.append(start)
        before = line
    return begins


def _line_blocks(text: str, around: Range) -> list[Block]:
    return [Block(*line, whole=True) for line in lines(text, around)]


_OPENING_OF = dict(zip(b")]}", b"([{", strict=True))
_OTHER_SIGNS = bytes(set(range(256)).difference(b"()[]{}"))


def nests_deeper(data: bytes, most: int) -> bool:
    """Whether more than `most` brackets of one kind are open at once; those in strings count, too. O(n).

    >>> nests_deeper(b"((((", 3), nests_deeper(b"(()(((", 4)
    (True, False)
    """
    depths = dict.fromkeys(_OPENING_OF.values(), 0)
    for sign in data.translate(None, _OTHER_SIGNS):
        kind = _OPENING_OF.get(sign, sign)
        step = 1 if sign == kind else -1
        depths[kind] = max(0, depths[kind] + step)
        if depths[kind] > most:
            return True
    return False


@dataclass(frozen=True)
class ParserLimits:
    """What a parser may take for a text. tree-sitter 0.26 needs limits for texts that are not of its language.

    Attributes:
        reports, reports_a_byte: progress reports, one every 100 steps. Code takes under 0.01 a byte. On a text that
            does not fit the grammar, or has an unclosed comment, they grow with the square of its length.
        reads_a_block: reads of 8,192 bytes. Code is read once; such texts again and again.
        operators: in one statement. The grammars of C++, Java and Rust keep each way to read a chain of operators that
            may open type arguments: 5 GB for 12 kB.
        levels: of one kind of bracket, also in strings; one of 53,000 files has over 300. Their release recurses once a
            level, and the stack of a thread overflows at some 10,000.
        seconds, seconds_a_byte: of processor time: 40 times what code takes, and 4 times the slowest grammar on code of
            another language.
    """

    reports: int = 1000
    reports_a_byte: float = 0.05
    reads_a_block: int = 50
    operators: int = 500
    levels: int = 1000
    seconds: float = 0.5
    seconds_a_byte: float = 1e-5


LIMITS = ParserLimits()
_READ = 8192  # bytes
_BY_LINES = ("go", "python")  # a statement ends with its line, so long expressions are harmless
_STATEMENT_END, _OPERATOR = re.compile(rb"[;{}#]"), re.compile(rb"[<=?]+|->")


def has_long_statement(data: bytes, most: int) -> bool:
    """Whether a statement has more than `most` operators.

    >>> has_long_statement(b"a = b; c = d;", 1), has_long_statement(b"a = b = c;", 1)
    (False, True)
    """
    statements = _STATEMENT_END.split(data)
    return any(len(_OPERATOR.findall(statement)) > most for statement in statements)


def _parsed(data: bytes, language: str, limits: ParserLimits) -> Node | None:
    """The root of tree-sitter's tree over a text's UTF-8; None if the text exceeds the limits."""
    grammar = load_grammar(language)
    from tree_sitter import Parser

    is_long = language not in _BY_LINES and has_long_statement(data, limits.operators)
    if is_long or nests_deeper(data, limits.levels):
        return None
    meter = ParserMeter(data, limits)
    try:
        tree = Parser(grammar).parse(meter.read, encoding="utf8", progress_callback=meter.is_over)
    except ValueError:  # the parser was stopped
        return None
    return None if meter.reads <= 0 else tree.root_node


class ParserMeter:
    """Hands a text to a parser and counts what the parser takes.

    >>> meter = ParserMeter(b"int a;", ParserLimits(reports=2))
    >>> meter.read(4, None), [meter.is_over(0, None) for _ in range(3)]
    (b'a;', [False, True, True])
    """

    def __init__(self, data: bytes, limits: ParserLimits) -> None:
        self.data = data
        self.limits = limits
        self.reports = 0
        self.reads = limits.reports + limits.reads_a_block * len(data) // _READ
        self.begun = time.thread_time()

    def read(self, offset: int, _: object) -> bytes:
        self.reads -= 1
        return self.data[offset : offset + _READ] if self.reads > 0 else b""

    def is_over(self, offset: int, _: object) -> bool:
        """Progress callback of tree-sitter: whether to stop at this byte."""
        self.reports += 1
        reports = self.limits.reports + self.limits.reports_a_byte * offset
        seconds = self.limits.seconds + self.limits.seconds_a_byte * offset
        spent = time.thread_time() - self.begun
        return self.reads <= 0 or self.reports >= reports or spent >= seconds


# Nodes of definitions, each with its kind in a path.
_KINDS = pairs(
    """
    abstract_class_declaration=class annotation_type_declaration=@interface class=class
    class_declaration=class class_definition=class class_specifier=class concept_definition=concept
    constructor_declaration=constructor enum_declaration=enum enum_item=enum enum_specifier=enum
    function_declaration=function function_definition=function function_item=fn
    generator_function_declaration=function impl_item=impl interface_declaration=interface
    internal_module=namespace macro_definition=macro_rules! method_declaration=method
    method_definition=method mod_item=mod module=module namespace_definition=namespace
    record_declaration=record struct_item=struct struct_specifier=struct trait_item=trait
    type_alias_declaration=type type_spec=type union_item=union union_specifier=union
    variable_declarator=function"""
)
# Kinds that have another name in a language.
_KINDS_OF = {
    "go": pairs("function_declaration=func method_declaration=func"),
    "python": pairs("function_definition=def"),
}
_WITH_GRAMMAR = ("c", "cpp", "go", "java", "javascript", "python", "rust", "tsx", "typescript")


@lru_cache
def load_grammar(language: str) -> Language:
    """A language's tree-sitter grammar. Raises `MissingExtraError`: its package or tree-sitter is not installed."""
    family = "typescript" if language == "tsx" else language
    name = f"tree-sitter-{family} (with tree-sitter)"
    tree_sitter = needed("tree_sitter", "structure", "read its language", name)
    module = needed(f"tree_sitter_{family}", "structure", "read its language", name)
    function = f"language_{language}" if family == "typescript" else "language"
    grammar: Language = tree_sitter.Language(getattr(module, function)())
    return grammar


# Languages with their file endings. A language without a grammar above is cut at blank lines and lines.
_ENDINGS = """
    assembly asm s | bash bash sh zsh | bibtex bib | c c | clojure clj cljs | cmake cmake | csharp cs |
    cpp cc cpp cxx c++ h hh hpp hxx ipp | css css less scss | cobol cbl cob | dart dart | diff diff patch |
    dockerfile dockerfile | fortran f90 f95 | graphql gql graphql |
    elixir ex exs | erlang erl | fsharp fs | go go | gettext po pot | groovy gradle groovy | haskell hs |
    ini cfg conf env ini properties |
    java java | javascript cjs js jsx mjs | json geojson json jsonl ndjson | julia jl | kotlin kt kts | lua lua |
    makefile makefile mk | matlab m | nim nim | nix nix | objectivec mm | ocaml ml mli | pascal pas | perl pl pm |
    php php | powershell ps1 | protobuf proto |
    python py pyi pyw | r r | ruby rb | rust rs | scala scala | solidity sol | sql sql | svelte svelte | swift swift |
    terraform hcl tf | toml toml | tsx tsx | typescript cts mts ts | vb bas vb vbs | vue vue |
    xml atom jats nxml opml rss svg tei xml xsd xslt | yaml yaml yml |
    zig zig"""
LANGUAGE_OF_ENDING = {
    ending: language
    for language, *endings in map(str.split, _ENDINGS.split("|"))
    for ending in endings
}
LANGUAGES = frozenset(("other", *LANGUAGE_OF_ENDING.values()))


_COMMENT_NODES = {"comment", "line_comment", "block_comment"}
# Join the next definition, unless a blank line is between.
_ATTACHED = _COMMENT_NODES | {"access_specifier", "annotation", "attribute_item", "decorator"}
# Cut only between lines.
_TEXT_NODES = _COMMENT_NODES | words(
    "string string_literal raw_string_literal template_string template_literal_type"
)
# Can enclose a definition.
_WRAPPERS = words(
    """ambient_declaration declaration decorated_definition export_statement expression_statement lexical_declaration
    linkage_specification template_declaration type_declaration type_definition variable_declaration"""
)
_FUNCTIONS = ("arrow_function", "function_expression")
# Hold a definition's members or statements.
_BODIES = words(
    """block class_body compound_statement constructor_body declaration_list enum_body enum_body_declarations
    field_declaration_list interface_body statement_block"""
)
_OPENING = re.compile(r"\w{0,3}\W*(?:\w*\()?")  # as in /** or C++'s R"mark(
_CLOSING = re.compile(r"\W*(?:\)\w*\")?")
_SPLICES = 40  # blocks that begin inside one line
_NAME = 200  # longest definition name in a path, in code points


def code_blocks(text: str, language: str, limits: ParserLimits | None = None) -> list[Block] | None:
    r"""The blocks of source code; definitions are their paths. They cover all text except white space. Linear time.

    Comments, attributes and decorators join the next definition, unless a blank line is between. Strings and comments
    are cut between lines, except next to their opening and closing lines. Of a language without a grammar see
    `nested_blocks`.

    Returns None if the parser gave up: the text is not code of this language; use "other".

    Raises `MissingExtraError`: the language's grammar is not installed.

    >>> blocks = code_blocks("import os\n\n# About f.\ndef f():\n    pass\n", "python")
    >>> [(block.start, block.end, block.path) for block in blocks or []]
    [(0, 9, ()), (11, 39, ('def f',))]
    """
    if language not in _WITH_GRAMMAR:
        return nested_blocks(text, language)
    data = text.encode("utf-8", "replace")  # an unpaired surrogate becomes a question mark
    root = _parsed(data, language, limits or LIMITS)
    if root is None:
        return None
    reader = _Reader(text, data, root, _KINDS | _KINDS_OF.get(language, {}))
    return reader.parts(root, (0, len(text)), (), ())


class _Place(NamedTuple):
    node: Node
    path: Titles
    begins_line: bool
    first: Node  # of the comments and attributes above it


@dataclass(frozen=True)
class _Reader:
    text: str
    data: bytes  # the text in UTF-8
    root: Node
    kinds: dict[str, str]  # of definitions

    @cached_property
    def continuing(self) -> Numbers:
        """Places of the bytes that go on in a character: the lowest as signed numbers."""
        return (np.frombuffer(self.data, dtype=np.int8) < -64).nonzero()[0]

    def code_points(self, places: Numbers) -> Numbers:
        """Convert byte offsets into `data` to code-point offsets."""
        return places - self.continuing.searchsorted(places)

    def parts(self, node: Node, whole: Range, around: Titles, own: Titles) -> list[Block]:
        """The blocks inside a node's range. Text before the first one leads, as does text before a long string."""
        if node.type in _TEXT_NODES:
            return self.lines(whole, own)
        groups, leading = self.groups(node, around + self.label(node))
        if not groups:
            return self.lines(whole, own)
        starts = self.code_points(np.array([place.first.start_byte for place in groups]))
        cuts = [_line_start(self.text, max(whole[0], place)) for place in starts.tolist()]
        head, *ranges = between(self.text, whole, cuts)
        blocks = []
        if head:
            inner = partial(self.lines, head, own, leads=True)
            blocks.append(Block(*head, own, whole=True, leads=True, parts=inner, text="lines"))
        for number, (place, kept) in enumerate(zip(groups, ranges, strict=True)):
            if kept:
                path = place.path + self.labels(place.node)
                leads = number < leading
                inner = partial(self.parts, place.node, kept, place.path, path)
                blocks.append(
                    Block(*kept, path, whole=True, leads=leads, parts=inner, text="lines")
                )
        return blocks

    def lines(self, around: Range, path: Titles, *, leads: bool = False) -> list[Block]:
        """The lines of a range. A line that only opens or closes a long string joins its neighbour."""
        cut: list[Range] = []
        for first, last in lines(self.text, around):
            if cut and _first_word(self.text, first) in self.joined:
                first = cut.pop()[0]
            cut.append((first, last))
        return [Block(*ends, path, whole=True, leads=leads) for ends in cut]

    @cached_property
    def joined(self) -> frozenset[int]:
        """Line starts, after the indent, that must stay with the line before."""
        texts = []
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if _is_long_text(node):
                texts.append(node)
            elif node.end_point.row > node.start_point.row:
                waiting.extend(node.children)
        ranges = self.code_points(as_table([node.byte_range for node in texts]))
        joined = []
        for ends in ranges.tolist():
            first, *rest = lines(self.text, ends)
            if rest and _OPENING.fullmatch(self.text, *first):
                joined.append(rest[0])
            if rest and _CLOSING.fullmatch(self.text, *rest[-1]):
                joined.append(rest[-1])
        return frozenset(_first_word(self.text, start) for start, _ in joined)

    def groups(self, node: Node, path: Titles) -> tuple[list[_Place], int]:
        """Where a node is cut, by lines; else inside its only line, with the number of the last long string."""
        places = list(self.places(node, path))
        groups = _grouped([place for place in places if place.begins_line])
        if len(groups) > 1 or (groups and groups[0].first.start_byte > node.start_byte):
            return groups, 0
        groups = _grouped(places)
        long = [number for number, place in enumerate(groups) if _is_long_text(place.node)]
        return groups, max(long, default=0)

    def places(self, node: Node, path: Titles) -> Iterator[_Place]:
        """Children where a range may be cut; a multi-line child that begins inside a line gives its own children."""
        row = node.start_point.row if node.parent else -1
        waiting = [(child, path, 0) for child in reversed(node.children)]
        while waiting:
            child, path, depth = waiting.pop()
            begins = child.start_point.row > row
            if depth < _SPLICES and _is_open(child, begins):
                inner = path + self.label(child)
                waiting += [(below, inner, depth + 1) for below in reversed(child.children)]
                continue
            if child.is_named:
                yield _Place(child, path, begins, child)
            row = _last_row(child)

    def labels(self, node: Node) -> Titles:
        """The label of the node's definition, or of the only definition inside it."""
        for _ in range(4):
            label = self.label(node)
            if label or node.type not in _WRAPPERS:
                return label
            kinds = _WRAPPERS | self.kinds.keys()
            wrapped = [child for child in node.named_children if child.type in kinds]
            if len(wrapped) != 1:
                break
            node = wrapped[0]
        return ()

    def label(self, node: Node) -> Titles:
        """A definition's kind and name, such as ("class Tea",); () for other nodes."""
        kind = self.kinds.get(node.type)
        if kind is None:
            return ()
        if node.type == "variable_declarator":
            value = node.child_by_field_name("value")
            if not value or value.type not in _FUNCTIONS:
                return ()
        part = node.child_by_field_name
        name = part("type") if kind == "impl" else part("name") or _declared(node)
        trait = self.source(part("trait"))
        before_name = f"{trait} for" if trait else self.source(part("receiver"))
        words = filter(None, (kind, before_name, self.source(name)))
        return (" ".join(words),) if name else ()

    def source(self, node: Node | None) -> str:
        if node is None:
            return ""
        data = self.data[node.start_byte : node.end_byte][: 4 * _NAME]
        return one_line(data.decode("utf-8", "ignore"))[:_NAME]


def _declared(node: Node) -> Node | None:
    """The name inside C's declarators, as in ``int *(*f)(void)``."""
    declarator = node.child_by_field_name("declarator")
    for _ in range(10):
        inner = declarator and declarator.child_by_field_name("declarator")
        if not inner:
            break
        declarator = inner
    return declarator


def _line_start(text: str, place: int) -> int:
    start = place
    while start and text[start - 1] in " \t\f":
        start -= 1
    return start if not start or text[start - 1] in "\r\n" else place


def _first_word(text: str, start: int) -> int:
    return _WHITE.match(text, start).end()  # type: ignore[union-attr]


def _is_open(child: Node, begins: bool) -> bool:
    """Whether the children of a node are cut for it: of a body, or of code in several lines that begins inside one."""
    goes_on = not begins and child.end_point.row > child.start_point.row
    is_open = (goes_on and child.type not in _TEXT_NODES) or child.type in _BODIES
    return is_open and bool(child.children)


def _is_long_text(node: Node) -> bool:
    return node.type in _TEXT_NODES and _last_row(node) > node.start_point.row


def _last_row(node: Node) -> int:
    """A node's last row; some nodes include the following line end."""
    row, column = node.end_point
    return row - 1 if column == 0 and node.end_byte > node.start_byte else row


def _grouped(places: list[_Place]) -> list[_Place]:
    """The definitions and statements, each with the comments and attributes above it."""
    groups: list[_Place] = []
    for place in places:
        before = groups[-1].node if groups else place.node
        follows = place.node.start_point.row <= _last_row(before) + 1
        if groups and before.type in _ATTACHED and follows:
            place = place._replace(first=groups.pop().first)
        groups.append(place)
    return groups
