"""What all other packages use: errors, the registry, parameters, results and their writers, Run, Collection, kernels."""
