"""Apply a controller to a scene."""
