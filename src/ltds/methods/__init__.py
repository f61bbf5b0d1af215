"""Methods: what a method is, and the table of those that can be trained by name."""

from __future__ import annotations

from ltds.methods.base import Method, Phase
from ltds.methods.entry import GROUPS, MethodEntry
from ltds.methods.problem import Problem
from ltds.methods.registry import METHODS, find_method, list_methods

__all__ = ["GROUPS", "METHODS", "Method", "MethodEntry", "Phase", "Problem", "find_method", "list_methods"]
