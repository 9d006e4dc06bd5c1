"""The gateway: who may enter, its messages, its subjects and a client."""
