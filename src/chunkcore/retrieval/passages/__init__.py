"""Passages: every window of every size is scored for the question; spans are chosen under a budget of tokens.

`index` has the retriever, `units` where units stand and what hits are worth to them, `windows` the units' scores,
`candidates` the units of one question and of one answer, `assembly` makes passages of units.
"""
