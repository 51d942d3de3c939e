"""The workbench: pages over the verbs of the workspace."""
