"""The saved index of a folder's files and its tool server. Only changed files are read, cut and embedded again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import regex

from chunkcore.chunkers import get_chunker
from chunkcore.errors import ChunkcoreError, DataError, NotWrittenError, OptionError, warn_user
from chunkcore.files import UnreadError, installed_version
from chunkcore.lazy import needed
from chunkcore.models.base import Embedder
from chunkcore.options import check_option_names
from chunkcore.plain import JsonObject, encodable, terminal_text
from chunkcore.reading import read_file
from chunkcore.reading.opening import folder_documents, load_documents, walk_folder
from chunkcore.reading.visible import from_source, html_setting, in_source, lines_of
from chunkcore.retrieval import Index, WindowIndex, chunk_corpus, get_retriever, load_index
from chunkcore.retrieval.base import MAX_TOKENS, MaxTokens, check_limits
from chunkcore.retrieval.saved import MANIFEST, is_ours, manifest_stamp, read_manifest, stamp_of
from chunkcore.run import Retrieved
from chunkcore.spans import pairs_of
from chunkcore.text import Document, Span, pages_of_all

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp_types import CallToolResult


UNITS = "sentence:size=50"
_LINES = "documents.jsonl"

Stamp = list[int]  # of a file; see `stamp_of`


@dataclass(frozen=True)
class FolderIndex:
    """An index, and where its documents come from.

    Attributes:
        root: the folder or file that was indexed; None: the index was not made from files.
        unread: the reasons of files that could not be read, by name.
        read: how many documents were read, not taken over.
        folder: where the index is saved; None: nowhere.
        embedder: see `load_index`.
        stamp: `manifest_stamp` of the folder when the index was opened.
        stamps: of a folder's files when they were indexed, by name.
        names: of these files, which may be elsewhere by now.
    """

    index: Index
    root: Path | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
    read: int = 0
    folder: Path | None = None
    embedder: Embedder | str | None = None
    stamp: Stamp = field(default_factory=list)
    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    names: Set[str] = frozenset()
    follow_links: bool = False
    _current: dict[tuple[object, ...], bool] = field(default_factory=dict, repr=False)

    def latest(self) -> FolderIndex:
        """The index as it was last saved into its folder, by any process: this one while there is no later save.

        Raises `DataError`: see `load_index`.
        """
        if self.folder is None or manifest_stamp(self.folder) == self.stamp:
            return self
        return open_index(self.folder, embedder=self.embedder)

    def changed(self, names: Iterable[str]) -> set[str]:
        """Of these documents of a folder, those whose file has another text than when it was indexed, or is gone.

        A file of another stamp is read once; one that cannot be read here counts as it was, one that is not found as
        gone. Where `stamps` are not known, none has changed; see `open_index`.
        """
        return {name for name in names if name in self.stamps and not self._is_current(name)}

    def _is_current(self, name: str) -> bool:
        assert self.root is not None
        file = self.root / name
        stamp = stamp_of(file)
        if stamp == self.stamps[name]:
            return True
        if not stamp or not file.is_file():
            return False
        key = name, *stamp
        if key not in self._current:
            inside = None if self.follow_links else self.root
            try:
                text = read_file(file, name, inside=inside).document.text
                self._current[key] = text == self.document(name).text
            except UnreadError:
                # No right to, or no reader here; but a link out of the folder is none of its files.
                self._current[key] = not file.is_symlink()
            except DataError:  # no text any more
                self._current[key] = False
        return self._current[key]

    def row(self, passage: Retrieved) -> JsonObject:
        """A passage as JSON values: document_id, file, lines (first and last, from 1), pages, spans, score, text and
        parts. Lines and spans are those of the file.
        """
        document = self.document(passage.document_id)
        return {
            "document_id": passage.document_id,
            "file": self.file(passage.document_id),
            "lines": lines_of(document, passage.spans),
            "pages": list(next(pages_of_all(document.marks, [passage.spans]))),
            "spans": pairs_of(in_source(document, passage.spans)),
            "score": passage.score,
            "text": passage.text,
            "parts": [
                {"spans": pairs_of(in_source(document, part.spans)), "score": part.score}
                for part in passage.parts
            ],
        }

    def document(self, document_id: str) -> Document:
        """A document of the index. Raises `DataError`: there is none of this id."""
        document = self.index.corpus.sources.get(document_id)
        if document is None:
            raise DataError(f"the index has no document {document_id!r}")
        return document

    def file(self, document_id: str) -> str:
        """The file of a document, as messages name it; its id where it comes from no file."""
        if self.root is None:
            return document_id
        was_by_file = document_id in self.names and document_id != self.root.name
        if was_by_file or _by_file(self.root):
            return str(self.root / document_id)
        file = self.root / _LINES if self.root.is_dir() else self.root
        return str(file)


_VISIBLE = regex.compile(r"[^\s\p{C}\p{Default_Ignorable_Code_Point}\u2800]")


def check_question(question: str) -> None:
    """Raise `OptionError`: no character of the question can be seen."""
    if _VISIBLE.search(question) is None:
        raise OptionError("the question is empty: write what to look for")


def is_index(folder: Path) -> bool:
    """Whether a folder is a saved index, whole or damaged."""
    if not (folder / MANIFEST).is_file() or (folder / _LINES).is_file():
        return False
    return sum(map(is_ours, folder.iterdir())) > 1


def open_index(
    folder: Path,
    *,
    embedder: Embedder | str | None = None,
) -> FolderIndex:
    """A saved index as it is; no file is read again. Raises `DataError`: see `load_index`.

    It knows the files of the folder that it was made of, for `FolderIndex.changed`, if one of them is as it was:
    elsewhere they are another machine's, or copies, or names that a stranger wrote into the manifest.
    """
    stamp = manifest_stamp(folder)  # before it is opened: a save between the two is opened again
    notes = read_manifest(folder)["notes"]
    name, stamps = notes.get("root"), notes.get("stamps")
    settings = notes.get("settings")
    root = Path(name) if isinstance(name, str) else None
    if not isinstance(stamps, dict):
        stamps = {}
    names = stamps.keys()
    if root is None or not _is_here(root, stamps):
        stamps = {}
    return FolderIndex(
        load_index(folder, embedder=embedder),
        root,
        folder=folder,
        embedder=embedder,
        stamp=stamp,
        stamps=stamps,
        names=names,
        follow_links=isinstance(settings, dict) and settings.get("follow_links") is True,
    )


def _is_here(root: Path, stamps: Mapping[str, Stamp]) -> bool:
    """Whether one of a folder's files has its stamp. Nothing outside the folder is looked at, and no other machine."""
    paths = map(Path, stamps)
    if str(root).startswith(("\\\\", "//")) or any(
        path.anchor or ".." in path.parts for path in paths
    ):
        return False
    try:
        return _by_file(root) and any(
            stamp and stamp_of(root / name) == stamp for name, stamp in stamps.items()
        )
    except (OSError, ValueError):  # no right to look, or no name of a file
        return False


def index_files(
    docs: Path,
    folder: Path | None,
    *,
    retriever: str = "passages:lexical",
    chunker: str = UNITS,
    embedder: Embedder | None = None,
    reread: bool = False,
    follow_links: bool = False,
) -> FolderIndex:
    """The index of a folder of files, a file or a ``documents.jsonl`` as they are now, saved in `folder`.

    A file is read again if its size, its times or its inode have changed, one that could not be read, too; a document
    is cut and embedded again if its text has. A damaged index, or one of other settings, is made anew.

    Args:
        docs, follow_links: see `load_documents`.
        folder: where the index is kept; None: nowhere.
        retriever, chunker, embedder: specs, and the model of a retriever that uses vectors.
        reread: read every file.

    Raises `DataError`: there is no document, or `folder` holds something else; `NotSavedError`, which has the index:
    it cannot be written. Warns of files that are left out, each time, with the reason.
    """
    closed: dict[str, str] = {}  # folders that cannot be listed
    stamps = _stamps(docs, closed, follow_links=follow_links)
    settings = {
        "retriever": get_retriever(retriever).name,
        "chunker": get_chunker(chunker).spec,
        "embedder": getattr(embedder, "fingerprint", None),
        "follow_links": follow_links,
        "html": html_setting(),
    }
    before, notes = _earlier(folder, embedder, settings)
    known = {} if reread else notes
    kept, unread = _as_before(docs, known, stamps)
    documents = []
    if stamps.keys() - kept - unread.keys() or closed or not kept:
        documents = _documents(docs, kept, unread, follow_links=follow_links)
    if before is None:
        index = get_retriever(retriever).index(chunk_corpus(documents, chunker), embedder)
    else:
        names = kept.union(document.id for document in documents)
        gone = [name for name in before.corpus.sources if name not in names]
        if not (_by_file(docs) or documents):
            gone = []
        index = before.update(documents, without=gone, chunker=chunker)
    opened = FolderIndex(
        index, docs, unread, len(documents), folder, embedder, follow_links=follow_links
    )
    reasons = {name: reason for name, reason in unread.items() if name in stamps}
    origin = {"root": str(docs.absolute()), "stamps": stamps, "unread": reasons}
    return _saved(opened, before, notes, {**origin, "settings": settings})


def _as_before(
    docs: Path, notes: JsonObject, stamps: Mapping[str, Stamp]
) -> tuple[set[str], dict[str, str]]:
    """The files that were read and are as they were; and those that could not be read, with the reasons."""
    if not notes:
        return set(), {}
    unchanged = {name for name, stamp in stamps.items() if notes["stamps"].get(name) == stamp}
    unread = {}
    for name, reason in notes["unread"].items():
        # What the system refused, or an extra that lacked, may be there now.
        if name in unchanged and not str(reason).startswith("cannot be read:"):
            unread[name] = str(reason)
            warn_user(f"left out of {docs}: {name}: {reason}")
    return unchanged - notes["unread"].keys(), unread


def _by_file(docs: Path) -> bool:
    """Whether each file is one document, whose id is the file's name."""
    return docs.is_dir() and not (docs / _LINES).is_file()


def _stamps(docs: Path, closed: dict[str, str], *, follow_links: bool) -> dict[str, Stamp]:
    """The stamp of each file; `closed` gets the folders that cannot be listed."""
    if _by_file(docs):
        files = walk_folder(docs, closed, follow_links=follow_links).files
    else:
        file = docs / _LINES if docs.is_dir() else docs
        files = {file.name: file} if file.exists() else {}
    return {name: stamp_of(file) for name, file in files.items()}


def _documents(
    docs: Path,
    kept: Set[str],
    unread: dict[str, str],
    *,
    follow_links: bool,
) -> list[Document]:
    """The documents of the files that are not as they were; what could not be read goes into `unread`."""
    if not _by_file(docs):
        return load_documents(docs, unread=unread)
    leave_out = [docs / name for name in kept | unread.keys()]
    return folder_documents(
        docs, leave_out, unread, follow_links=follow_links, may_be_none=bool(kept)
    )


def _earlier(
    folder: Path | None, embedder: Embedder | None, settings: JsonObject
) -> tuple[Index | None, JsonObject]:
    """The index in the folder and its notes, if it is whole and of these settings."""
    if folder is not None and (folder / MANIFEST).exists():
        try:
            notes = read_manifest(folder)["notes"]
            index = load_index(folder, embedder=embedder)
        except DataError as error:
            warn_user(f"{error.args[0].partition(';')[0]}; it is made anew")
            return None, {}
        is_ours = all(isinstance(notes.get(name), dict) for name in ("stamps", "unread"))
        if is_ours and notes.get("settings") == settings:
            return index, notes
    return None, {}


def _saved(
    opened: FolderIndex,
    before: Index | None,
    old_notes: JsonObject,
    notes: JsonObject,
) -> FolderIndex:
    """The index, saved in its folder unless that has it already."""
    index, folder = opened.index, opened.folder
    if folder is None:
        return opened
    if index is not before or notes != old_notes:
        index.saved_place = None  # it is of the files as they are, whoever saved meanwhile
        try:
            index.save(folder, notes=notes)
        except OSError as error:
            raise NotSavedError(folder, error, opened) from error
    return replace(opened, stamp=manifest_stamp(folder))


class NotSavedError(NotWrittenError):
    """An index that could not be written into its folder: the disk is full, or may not be written to.

    Attributes:
        opened: the index, in memory.
    """

    def __init__(
        self,
        folder: Path,
        error: OSError,
        opened: FolderIndex,
    ) -> None:
        place = error.filename or folder
        there = "the index that was there is as it was" if is_index(folder) else "no index is there"
        super().__init__(f"the index is not kept: {place}: {error.strerror or error}; {there}")
        self.opened = opened


_AROUND = 500  # characters before and after a span
_MOST = 20_000  # tokens of an answer at most
_NOTHING = "No passage answers this question: try other words."
_NO_DOCUMENT = "No document has these values in its metadata: ask for others, or without where."
_FAR = " (no nearer to the question than chance)"
_ABSENT = " (the answer is probably not in these documents)"


def tool_server(
    searched: FolderIndex,
    reopen: Callable[[], FolderIndex] | None = None,
) -> MCPServer[Any]:
    """A server with the tool ``search`` and the resource ``span://{document}/{start}/{end}``.

    ``search(question, max_tokens, where)`` answers with a block of text per passage, under a line with its file, its
    lines and the address of its span. The structured content has the places without the texts, as `FolderIndex.row`
    describes them; whether the question is `related`; and its `missing` words, which no passage has. The resource reads
    a span with 500 characters before and after it. Both read the index alone.

    An index that is saved while it is served is seen at the next question; so are changed and added files if `reopen`
    indexes them. ``server.run("stdio")`` serves.

    Raises `MissingExtraError`: the package mcp is not installed.
    """
    exceptions = needed("mcp.server.mcpserver.exceptions", "mcp", "serve a tool")
    source = _Source(searched, reopen)
    server = _server(_search_tool(source), len(searched.index.corpus.documents))

    @server.resource("span://{document}/{start}/{end}", mime_type="text/plain")
    def span(document: str, start: str, end: str) -> str:
        """The text of a span with 500 characters before and after it."""
        try:
            read = source.latest().document(document)
            place = from_source(read, Span(int(start), int(end)))
        except (ChunkcoreError, ValueError) as error:
            reason = f"a span is span://DOCUMENT/START/END of a document here: {error}"
            raise exceptions.ResourceError(reason) from error
        return encodable(read.text[max(0, place.start - _AROUND) : place.end + _AROUND])

    return server


def _search_tool(source: _Source) -> Any:
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import CallToolResult

    def search(
        question: str,
        max_tokens: int | Literal["auto"] | None = None,
        where: dict[str, Any] | None = None,
    ) -> CallToolResult:
        """Find the passages that answer a question, best first, at most max_tokens tokens together.

        max_tokens: by default 1,000, or "auto", what the question needs, where the index is calibrated.
        where: keep documents whose metadata have these values, such as {"level": "public"}.
        """
        try:
            return _answer(source.latest(), question, max_tokens, where)
        except ChunkcoreError as error:
            raise ToolError(str(error)) from error

    search.__annotations__["return"] = CallToolResult  # which the package reads
    tool = Tool.from_function(search)
    tool.parameters["additionalProperties"] = False
    return tool


def _server(tool: Any, documents: int) -> MCPServer[Any]:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    class Server(MCPServer[Any]):
        async def call_tool(
            self,
            name: str,
            arguments: Mapping[str, Any],
            context: Any = None,
        ) -> Any:
            """Refuses arguments that the tool does not have, which the package drops, and what it would convert."""
            try:
                check_option_names(f"the tool {name}", arguments, tool.parameters["properties"])
                check_limits(None, arguments.get("max_tokens"))
            except OptionError as error:
                raise ToolError(str(error)) from error
            return await super().call_tool(name, dict(arguments), context)

    return Server(
        "chunkcore",
        version=installed_version(),
        instructions=f"Searches {documents:,} documents. Answers are exact spans; cite them by file and lines.",
        tools=[tool],
    )


class _Source:
    """The index that is served, opened again when it or its files have changed."""

    def __init__(
        self,
        searched: FolderIndex,
        reopen: Callable[[], FolderIndex] | None,
    ) -> None:
        self._searched = searched
        self._reopen = reopen
        self._lock = Lock()
        self._stamps = self._file_stamps()

    def latest(self) -> FolderIndex:
        with self._lock:
            if self._reopen is None:
                self._searched = self._searched.latest()
            else:
                stamps = self._file_stamps()
                if stamps != self._stamps:
                    self._searched = self._reopen()
                    self._stamps = stamps
            return self._searched

    def _file_stamps(self) -> dict[str, Stamp]:
        """The stamps of the files that `index_files` would read."""
        searched = self._searched
        if searched.root is None or self._reopen is None:
            return {}
        return _stamps(searched.root, {}, follow_links=searched.follow_links)


def _budget(index: Index, max_tokens: MaxTokens | None) -> MaxTokens:
    if max_tokens is None:
        max_tokens = MAX_TOKENS if index.enough is None else "auto"
    return max_tokens if max_tokens == "auto" else min(max_tokens, _MOST)


def _answer(
    searched: FolderIndex,
    question: str,
    max_tokens: MaxTokens | None,
    where: JsonObject | None,
) -> CallToolResult:
    from mcp_types import CallToolResult, ContentBlock, TextContent

    check_question(question)
    index = searched.index.within(where) if where else searched.index
    passages = index.retrieve(question, max_tokens=_budget(index, max_tokens))
    related, missing = True, []
    if isinstance(index, WindowIndex):
        related = index.is_related(question)
        missing = index.missing_words(question, passages)
    note = ""
    if not related:
        note = _FAR if index.enough is None else _ABSENT
    places = []
    texts = []
    for passage in passages:
        row = searched.row(passage)
        del row["parts"], row["text"]
        for key in ("document_id", "file"):  # names of files need not be UTF-8
            row[key] = encodable(row[key])
        start, end = row["spans"][0][0], row["spans"][-1][1]
        uri = f"span://{quote(row['document_id'], safe='')}/{start}/{end}"
        places.append({**row, "uri": uri, "related": related})
        first, last = row["lines"]
        file = terminal_text(row["file"])  # a name with line ends would look like another passage
        texts.append(f"{file}, lines {first}-{last}, {uri}{note}\n{encodable(passage.text)}")
    nothing = _NOTHING if len(index.corpus) else _NO_DOCUMENT
    content: list[ContentBlock] = [
        TextContent(type="text", text=text) for text in texts or [nothing]
    ]
    structured = {"result": places, "related": related, "missing": missing}
    return CallToolResult(content=content, structured_content=structured)
