"""Reports: tables, figures and an HTML page from a run folder. Nothing here loads torch."""
