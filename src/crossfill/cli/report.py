"""`crossfill report RUN`: tables, figures and one HTML page of a study."""
def report() -> None:
    """x."""
