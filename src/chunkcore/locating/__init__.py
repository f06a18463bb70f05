"""Where text stands in documents: names, offsets, alignment.

alignment.py    locates a text in the documents by its words
text_search.py  finds candidates
"""
