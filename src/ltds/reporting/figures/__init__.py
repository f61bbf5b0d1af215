"""Figures: arrays in, a matplotlib Figure out, one file each."""
