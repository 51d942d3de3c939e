"""One function a page; a file for pages that belong together."""
