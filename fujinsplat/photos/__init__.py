"""Photographs as they come from a camera: found, paired, and given poses, so that the workflow can begin.

`find` looks through a folder of any shape, `given` takes poses that are there already, `arrange` makes of both a scene
folder that the capture stage knows, and `command` is the front for someone who has nothing but the folder.
"""
