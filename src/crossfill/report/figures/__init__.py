"""The figures of a report, one module each; drawn from results alone, without torch."""
