"""A component for spaCy's pipelines, registered by entry point as `crossfill`."""
