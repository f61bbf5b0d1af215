"""Measuring what a model said: it sees a method only as a callable from images to predictions."""
