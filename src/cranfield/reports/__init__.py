"""Reports: pages, tables for a paper, charts. The numbers come from other rooms."""
