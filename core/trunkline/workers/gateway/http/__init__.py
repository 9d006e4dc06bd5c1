"""The HTTP server: the Gateway API, OpenAI's API, turns and blocks. It calls the gateway's services.

Each reply is one of the structs in ``schemas`` or ``openai_schemas``; there are no undocumented fields.
"""
