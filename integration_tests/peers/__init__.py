"""LangChain's own tests of its splitters, answered by what `chunkadapters.exact` makes of them.

test_peers.py   fetches LangChain's source distribution, and runs its tests with the originals and with ours
plugin.py       a pytest plugin: it puts ours in the splitters' place, and writes down what became of each test
known.json      the tests that fail by the ids and places that our documents have besides
"""
