"""Methods: a class and a frozen preset each."""
