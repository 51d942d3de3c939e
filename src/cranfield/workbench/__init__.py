"""The workbench: the web pages of a workspace, and the computations behind them."""
