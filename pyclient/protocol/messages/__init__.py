"""One file per API, request and response together; see `registry` for the numbers."""
