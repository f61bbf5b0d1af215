"""Types of bodies: walkers, birds, swimmers, jointed-legged, and what they share."""
