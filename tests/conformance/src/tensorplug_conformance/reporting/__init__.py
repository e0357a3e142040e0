"""The report: its schema, its arithmetic, and every form in which it is shown."""
