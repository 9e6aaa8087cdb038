"""Studies: many training runs, planned, executed and recorded in a run folder."""
