"""Losses as equations: pure functions of tensors."""
