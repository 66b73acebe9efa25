"""Ground that every stage stands on: colour, files, errors, settings. Imports nothing of ours but itself."""
