"""Methods: what a method is, and the table of those that can be trained by name."""

from __future__ import annotations

from ltds.methods.base import Method, Phase
from ltds.methods.entry import MethodEntry
from ltds.methods.problem import Problem
from ltds.methods.registry import find_method, list_methods

__all__ = ["Method", "MethodEntry", "Phase", "Problem", "find_method", "list_methods"]
