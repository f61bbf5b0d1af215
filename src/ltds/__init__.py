"""ltds: classification when classes are long-tailed, domains shift and some classes were never seen."""

__version__ = "0.1.0.dev0"
