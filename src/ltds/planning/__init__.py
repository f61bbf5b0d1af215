"""Looks at a dataset: what is wrong with it, how to train on it, and how long that takes."""
