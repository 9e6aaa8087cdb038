"""A trained model served over HTTP: an API, and a page that shows predictions and their uncertainty."""
