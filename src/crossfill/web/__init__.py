"""A trained model behind HTTP: an API, and a page to look at what the model believes."""
