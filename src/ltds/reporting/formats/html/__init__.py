"""The HTML page: one file with style, script, tables and figures."""
