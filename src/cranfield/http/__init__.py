"""The base of both servers, workbench and service: where they listen, limits of clients, requests that are refused."""
