"""Train or import the scene-agnostic controller."""
