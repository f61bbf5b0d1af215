"""Methods: what a method is, and the table of those that can be trained by name. The table does not load torch."""
