"""What leaves the house: a scene's cleared views as a dataset for other programs, a turntable, a page of its own."""
