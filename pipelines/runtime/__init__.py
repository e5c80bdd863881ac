"""The stage runtime: many requests on one device, ordered by urgency, each abortable at once."""
