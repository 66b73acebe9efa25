"""Train, render and export Gaussians."""
