"""The workbench: the web pages of a workspace, with what they compute."""
