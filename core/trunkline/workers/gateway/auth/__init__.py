"""The gateway's services for identities, access tokens, pairing codes and policies."""
