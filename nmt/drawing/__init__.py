"""The drawing room: text in any script laid out and drawn, attention as a picture."""
