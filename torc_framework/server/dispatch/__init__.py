"""Request handlers and the OpenAPI document, made from declarations of endpoints; worker processes for large bodies."""
