"""The package as its users get it: built, looked into, and installed with each extra alone (`make test-packages`)."""
