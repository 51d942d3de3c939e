"""The pages: one function per page, and one file for pages that belong together."""
