"""Ways in. Each is a leaf: it turns one kind of connection into `runtime.transport.Transport`."""
