"""The realtime server: protocol, sessions and transports. Knows conversation, knows no model."""
