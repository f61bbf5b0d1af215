"""The loop: everything a run does, written once for all methods."""
