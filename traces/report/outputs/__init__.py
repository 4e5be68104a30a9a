"""The report as text, in the forms of CI servers and code hosts, and as a table."""
