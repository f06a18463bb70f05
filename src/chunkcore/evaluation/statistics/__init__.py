"""What the numbers support: intervals and tests, comparisons and their verdict, checks for continuous integration."""
