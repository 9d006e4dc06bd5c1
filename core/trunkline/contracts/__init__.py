"""What workers, plugins and clients agree on, one package a domain: messages, subjects, protocols and clients."""
