"""The OpenAPI document, generated from the structs of requests and replies and from the scopes of the routes."""
