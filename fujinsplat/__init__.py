"""FujinSplat: RAW photographs taken through smoke in, one clean 3D Gaussian scene out."""

__version__ = "0.2.0"
