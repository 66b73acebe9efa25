"""More operations on the flow's explicit vectors (`fujinsplat.kernels.simd`), for the pixel loops of the rasteriser.

Written down like this the loops run at full width on every CPU and compile the same way each time; left to the
compiler they are vectorised only when it can prove, or test at run time, that nothing overlaps. Vectors of eight
float32 suit splats, most of which are a few pixels wide.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array

from fujinsplat.kernels.jit import intrinsic
from fujinsplat.kernels.simd import CONTRACT, Vector, splat, store  # also registers + - * for vectors

__all__ = [
    "LANES",
    "MAGIC",
    "above",
    "at_most",
    "divide",
    "lane_numbers",
    "largest",
    "lesser",
    "load",
    "prefetch",
    "splat",
    "store",
    "times_power_of_two",
    "total",
]

LANES = 8  # float32 numbers side by side
MAGIC = 1.5 * 2**23  # added to a float32, it rounds it to an integer


@intrinsic
def load(typing, array, offset):
    """LANES numbers of a contiguous float32 array from `offset` on."""
    vector = Vector(array.dtype, LANES)

    def emit(context, builder, signature, args):
        data = builder.gep(make_array(array)(context, builder, args[0]).data, [args[1]])
        pointer = builder.bitcast(data, ir.VectorType(context.get_value_type(array.dtype), LANES).as_pointer())
        return builder.load(pointer, align=4)

    return vector(array, types.intp), emit


@intrinsic
def prefetch(typing, array, row):
    """Ask for the memory of `array[row]` (2-D, contiguous) ahead of its use."""

    def emit(context, builder, signature, args):
        made = make_array(array)(context, builder, args[0])
        stride = builder.extract_value(made.strides, 0)
        byte = ir.IntType(8).as_pointer()
        address = builder.gep(builder.bitcast(made.data, byte), [builder.mul(args[1], stride)])
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, ir.Constant(i32, 0), ir.Constant(i32, 3), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return types.none(array, types.intp), emit


@intrinsic
def lane_numbers(typing, like):
    """0, 1, 2, … in the type of the vector `like`."""

    def emit(context, builder, signature, args):
        scalar = context.get_value_type(like.dtype)
        return ir.Constant(
            ir.VectorType(scalar, like.count), [ir.Constant(scalar, float(i)) for i in range(like.count)]
        )

    return like(like), emit


@intrinsic
def divide(typing, a, b):
    """a / b, lane by lane."""

    def emit(context, builder, signature, args):
        return builder.fdiv(*args, flags=CONTRACT)

    return a(a, b), emit


@intrinsic
def lesser(typing, a, b):
    """The smaller of a and b, lane by lane."""

    def emit(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return a(a, b), emit


@intrinsic
def at_most(typing, a, b, then, otherwise):
    """`then` where a <= b, else `otherwise`."""

    def emit(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<=", args[0], args[1]), args[2], args[3])

    return then(a, b, then, otherwise), emit


@intrinsic
def above(typing, a, b, then, otherwise):
    """`then` where a > b, else `otherwise`."""

    def emit(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return then(a, b, then, otherwise), emit


@intrinsic
def times_power_of_two(typing, value, exponent):
    """value * 2^n, where `exponent` is n + MAGIC: that sum's last bits are the integer n, to be added to the exponent
    bits."""

    def emit(context, builder, signature, args):
        integers = ir.VectorType(ir.IntType(32), value.count)
        shift = ir.Constant(integers, [ir.Constant(ir.IntType(32), 23)] * value.count)
        bits, n = (builder.bitcast(argument, integers) for argument in args)
        return builder.bitcast(builder.add(bits, builder.shl(n, shift)), args[0].type)

    return value(value, exponent), emit


def _halving(combine):
    """Reduce a vector to a number by combining its halves, again and again: a fixed order, log2(n) steps."""

    def emit(context, builder, signature, args):
        value, count = args[0], signature.args[0].count
        i32 = ir.IntType(32)
        while count > 1:
            count //= 2
            low, high = (
                ir.Constant(ir.VectorType(i32, count), [ir.Constant(i32, i + shift) for i in range(count)])
                for shift in (0, count)
            )
            value = combine(
                builder, builder.shuffle_vector(value, value, low), builder.shuffle_vector(value, value, high)
            )
        return builder.extract_element(value, ir.Constant(i32, 0))

    return emit


@intrinsic
def total(typing, value):
    """The sum of all lanes."""
    return value.dtype(value), _halving(lambda builder, a, b: builder.fadd(a, b))


@intrinsic
def largest(typing, value):
    """The largest of all lanes."""
    return value.dtype(value), _halving(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
