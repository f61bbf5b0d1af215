"""The table of methods, in families."""
