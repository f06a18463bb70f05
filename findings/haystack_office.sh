#!/usr/bin/env bash
# Guess: DOCXToDocument gives a document as Word shows it, with its tracked changes as if they were accepted, and
#        PPTXToDocument all text of a slide.
# Seen: haystack-ai 3.4.1 (python-docx 1.2.0, python-pptx 1.0.2) shows neither the deleted nor the inserted text, and
#       leaves out content controls, into which templates are filled; of slides, tables, grouped boxes and notes.
# Why it matters: contracts under review lose their newest numbers, filled templates their names, slides their figures.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet haystack-ai==3.4.1 python-docx==1.2.0 python-pptx==1.0.2
HAYSTACK_TELEMETRY_ENABLED=False venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

import docx
from docx.oxml import parse_xml
from haystack.components.converters import DOCXToDocument, PPTXToDocument
from pptx import Presentation

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
document = docx.Document()
fee = document.add_paragraph("The fee is ")
fee._p.append(parse_xml(f'<w:del {WORD} w:id="1" w:author="A"><w:r><w:delText>10</w:delText></w:r></w:del>'))
fee._p.append(parse_xml(f'<w:ins {WORD} w:id="2" w:author="A"><w:r><w:t>25</w:t></w:r></w:ins>'))
fee.add_run(" euros.")
tenant = document.add_paragraph("Object: ")
tenant._p.append(parse_xml(f"<w:sdt {WORD}><w:sdtContent><w:r><w:t>flat 7</w:t></w:r></w:sdtContent></w:sdt>"))
document.save("contract.docx")

slides = Presentation()
slide = slides.slides.add_slide(slides.slide_layouts[5])
slide.shapes.title.text = "Prices"
table = slide.shapes.add_table(1, 2, 0, 0, 9, 9).table
table.cell(0, 0).text, table.cell(0, 1).text = "valve", "10 euros"
slide.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "All without tax."
slide.shapes.add_group_shape().shapes.add_textbox(0, 0, 9, 9).text_frame.text = "Until May."
slide.notes_slide.notes_text_frame.text = "Say that lids are free."
slides.save("prices.pptx")

seen = [
    DOCXToDocument().run(["contract.docx"])["documents"][0].content,
    PPTXToDocument().run(["prices.pptx"])["documents"][0].content,
]
print({name: version(name) for name in ("haystack-ai", "python-docx", "python-pptx")}, seen)
assert seen == ["The fee is  euros.\nObject: ", "Prices\nAll without tax."], "changed"
PYTHON
