"""From a plan of images to a finished dataset folder: what all builders of datasets share."""
