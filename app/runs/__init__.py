"""A run from plan to report: submit, drive, record, control, report, export."""
