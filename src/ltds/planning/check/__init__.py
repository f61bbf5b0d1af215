"""`ltds.check`: what is wrong with a dataset, what its numbers would rest on, and how to start."""
