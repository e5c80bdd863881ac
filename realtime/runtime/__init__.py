"""One task group per session: reader, ingress, driver, stage work and writer.

Everything here runs on the event loop. The driver alone steps the conversation, and does so
synchronously: an event, its effects and the audio that is due are one indivisible act.
"""
