"""Makes the pages of the chunkers: ``python -m docs.making``, from the root of the repository."""
