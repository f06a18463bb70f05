"""The frameworks' own tests of their splitters, answered by what `chunkadapters.exact` makes of them.

    python -m integration_tests.peers.run

sources.py   the source distributions, fetched by package name, and the tests inside them
plugin.py    a pytest plugin: it puts the drop-ins in the splitters' place, and writes down what became of each test
run.py       the runs of one framework's tests, side by side, and the command
known.py     the tests that our drop-ins fail, each with its reason; their names are in known.json
"""
