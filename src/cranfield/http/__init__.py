"""The base of both servers, the workbench and the service: where they listen, what a client may take up, what is refused."""
