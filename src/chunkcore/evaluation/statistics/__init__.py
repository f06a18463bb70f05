"""Statistics: intervals and tests, comparisons with a verdict, checks for continuous integration."""
