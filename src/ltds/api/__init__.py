"""Public functions that need several packages: they do what the commands do, with the same options and defaults."""
