"""The room that all others build on: errors, the registry, parameters, results and their writers, Run, Collection, kernels."""
