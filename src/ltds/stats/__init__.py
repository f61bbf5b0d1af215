"""Running statistics of features, in buffers."""
