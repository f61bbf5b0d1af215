"""The command line: options, help texts and messages around the functions of the library."""
