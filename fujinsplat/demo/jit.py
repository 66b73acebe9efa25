"""How every numeric kernel of the demo world is compiled.

Kept on disk, without the interpreter's lock (views are rendered side by side by plain threads), with IEEE division
and without the parts of fast arithmetic that would forbid infinities.
"""

from fujinsplat.kernels import jit

kernel = jit.kernel(nogil=True, error_model="numpy", fastmath={"contract", "arcp", "reassoc", "nsz", "afn"})
