#!/usr/bin/env bash
# Guess: EbookLib's get_items_of_type(ITEM_DOCUMENT), by which loaders read an EPUB, gives chapters as they are read.
# Seen: 0.20 gives them as the file's list of parts has them: chapter 10 before chapter 2 where that list is sorted
#       by name, and the contents last; the order is in book.spine alone.
# Why it matters: neighbours of a passage, and chunks over the end of a chapter, are of other chapters.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet EbookLib==0.20
venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from ebooklib import ITEM_DOCUMENT, epub

book = epub.EpubBook()
book.set_title("Pumps")
book.set_language("en")
chapters = []
for number in (1, 2, 10):
    chapter = epub.EpubHtml(title=f"Chapter {number}", file_name=f"chapter{number}.xhtml", uid=f"chapter{number}")
    chapter.content = f"<h1>Chapter {number}</h1><p>About pumps.</p>"
    chapters.append(chapter)
for chapter in sorted(chapters, key=lambda chapter: chapter.file_name):
    book.add_item(chapter)
book.add_item(epub.EpubNav())
book.spine = ["nav", *chapters]
epub.write_epub("book.epub", book)

read = epub.read_epub("book.epub")
seen = [item.get_id() for item in read.get_items_of_type(ITEM_DOCUMENT)]
spine = [identifier for identifier, _ in read.spine]
print({"EbookLib": version("EbookLib")}, "documents:", seen, "spine:", spine)
assert seen == ["chapter1", "chapter10", "chapter2", "nav"], "changed"
assert spine == ["nav", "chapter1", "chapter2", "chapter10"], "changed"
PYTHON
