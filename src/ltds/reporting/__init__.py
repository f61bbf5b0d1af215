"""Tables and pages from run directories; never imports a model."""
