"""HTTP in front of the gateway's services: PA's Gateway API, OpenAI's chat completions, turns and blocks.

Translation only. What leaves is one of the structs in ``schemas`` or ``openai_schemas``, nothing undocumented.
"""
