"""The command line: thin, friendly, no mathematics."""
