"""Make labelled synthetic RAW observations."""
