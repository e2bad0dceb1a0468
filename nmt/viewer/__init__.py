"""The viewer of translations: one set of files for the server's page, for reports and for notebooks."""
