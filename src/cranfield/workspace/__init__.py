"""The verbs: what the command line and the web application both call, one module a kind of work.

A verb opens files by name, guards standard input, tells runs of the same name apart, puts the library's parts together
and returns an `Answer`; how that looks is the caller's affair. Where a function of the library takes a file's name
itself, there is no verb: callers use the function.
"""
