"""Recipes whose package is not installed here are left alone; the tests that run them skip with the reason."""

from __future__ import annotations

from importlib.util import find_spec

RECIPES = {"langgraph": "langgraph", "stores": "langchain_core", "tracing": "langchain_core"}
RECIPES |= {"upserts": "llama_index", "yaml": "haystack"}
collect_ignore = [f"{name}_recipe.py" for name, package in RECIPES.items() if find_spec(package) is None]
