"""Plans of a body: walkers, birds, swimmers, jointed-legged, and the parts that they share."""
