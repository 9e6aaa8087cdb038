"""A run folder into tables, figures and one page. Nothing here loads torch."""
