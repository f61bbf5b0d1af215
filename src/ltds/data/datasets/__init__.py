"""Builders: a source to a manifest, nothing else."""
