"""From a source of images to batches: manifest, cache, transforms, sampling, loading."""
