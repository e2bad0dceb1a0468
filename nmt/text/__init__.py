"""Text room: strings <-> token ids, scripts and sentences. It uses no torch; `data` and the rooms above use it."""
