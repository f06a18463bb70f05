"""Makes the pages of the strategies: ``python -m docs.making``, from the root of the repository."""
