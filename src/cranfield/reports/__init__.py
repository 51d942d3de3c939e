"""Reports: pages, tables for a paper, charts. Other packages compute the numbers."""
