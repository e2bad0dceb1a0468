"""The viewer of translations, shared by the server's page, reports and notebooks."""
