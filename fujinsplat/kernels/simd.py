"""Explicit vectors for Numba: as many pixels side by side as the CPU's registers hold.

The flow is 45 table look-ups per pixel in tables of 8 to 32 entries. A compiler turns such a loop into slow memory
gathers; but a table this small fits into one or two registers, and a register permutation then looks up all lanes at
once. LLVM emits that instruction (vpermps and its kin) when it meets a vector assembled from variable elements of
another, which is what `lookup` writes down. Everything here is plain LLVM IR, so it is correct on any CPU and fast
where the instructions exist.

    v = load(array, i)          LANES consecutive numbers of a contiguous 1-D array; `store` puts them back
    r, g, b = load_rgb(...)     LANES interleaved pixels as three vectors; `store_rgb` puts them back
    + - *                       elementwise, vector with vector
    splat(x, like=v)            the number x in every lane
    bounded(v, low, high)       clamped; NaN becomes low
    at_least(v, w, a, b)        a where v >= w, else b
    index(v)                    truncated to integers
    lookup(array, i, chunks, k) array[i + k] for every lane's k; the table is `chunks` vectors long
    accumulate(array, i, copy, k, x, y)   array[i + 2 k] += x and array[i + 2 k + 1] += y, lane after lane, the lanes
                                taking turns with COPIES accumulators that lie `copy` numbers apart
"""

import operator

import llvmlite.binding
from llvmlite import ir
from numba import config, types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import overload, register_model
from numba.np.arrayobj import make_array

from fujinsplat.kernels.jit import intrinsic

_WIDE = not getattr(config, "CPU_FEATURES", None) and llvmlite.binding.get_host_cpu_features().get("avx512f")
REGISTER_BYTES = 64 if _WIDE else 32
# accumulators side by side, so that neighbouring pixels of one colour do not wait for each other
COPIES = 4
# fused multiply-add where the CPU has it
CONTRACT = ("contract",)


def lanes(itemsize: int) -> int:
    """How many numbers of `itemsize` bytes go side by side on this CPU."""
    return REGISTER_BYTES // itemsize


class Vector(types.Type):
    """LANES numbers of one Numba scalar type."""

    def __init__(self, dtype: types.Number, count: int):
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Vector({dtype}, {count})")

    @property
    def integers(self) -> "Vector":
        return Vector(types.int32 if self.dtype == types.float32 else types.int64, self.count)


@register_model(Vector)
class _VectorModel(PrimitiveModel):
    def __init__(self, manager, vector):
        super().__init__(manager, vector, ir.VectorType(manager.lookup(vector.dtype).get_value_type(), vector.count))


def _vector_of(array) -> Vector:
    return Vector(array.dtype, lanes(array.dtype.bitwidth // 8))


def _pointer(context, builder, array_type, array, offset, count):
    """Address of `array[offset]`, as a pointer to `count` numbers, and their size in bytes (their only alignment)."""
    data = builder.gep(make_array(array_type)(context, builder, array).data, [offset])
    scalar = context.get_value_type(array_type.dtype)
    return builder.bitcast(data, ir.VectorType(scalar, count).as_pointer()), array_type.dtype.bitwidth // 8


def _constant(vector_type: ir.VectorType, value) -> ir.Constant:
    return ir.Constant(vector_type, [ir.Constant(vector_type.element, value)] * vector_type.count)


def _shuffle(builder, a, b, lanes_taken):
    i32 = ir.IntType(32)
    mask = ir.Constant(ir.VectorType(i32, len(lanes_taken)), [ir.Constant(i32, lane) for lane in lanes_taken])
    return builder.shuffle_vector(a, b, mask)


@intrinsic
def load(typing, array, offset):
    vector = _vector_of(array)

    def emit(context, builder, signature, args):
        pointer, align = _pointer(context, builder, array, args[0], args[1], vector.count)
        return builder.load(pointer, align=align)

    return vector(array, types.intp), emit


@intrinsic
def store(typing, array, offset, value):
    def emit(context, builder, signature, args):
        pointer, align = _pointer(context, builder, array, args[0], args[1], value.count)
        builder.store(args[2], pointer, align=align)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), emit


@intrinsic
def load_rgb(typing, array, offset):
    vector = _vector_of(array)
    n = vector.count

    def emit(context, builder, signature, args):
        parts = []
        for part in range(3):
            start = builder.add(args[1], ir.Constant(args[1].type, part * n))
            pointer, align = _pointer(context, builder, array, args[0], start, n)
            parts.append(builder.load(pointer, align=align))
        planes = []
        for channel in range(3):
            where = [3 * lane + channel for lane in range(n)]  # 0 … 3n-1 in the three parts laid end to end
            pair = _shuffle(builder, parts[0], parts[1], [w if w < 2 * n else 0 for w in where])
            planes.append(_shuffle(builder, pair, parts[2], [i if w < 2 * n else w - n for i, w in enumerate(where)]))
        return context.make_tuple(builder, signature.return_type, planes)

    return types.UniTuple(vector, 3)(array, types.intp), emit


@intrinsic
def store_rgb(typing, array, offset, red, green, blue):
    n = red.count

    def emit(context, builder, signature, args):
        for part in range(3):
            where = [(w % 3, w // 3) for w in range(part * n, (part + 1) * n)]  # (channel, lane) of each number
            pair = _shuffle(
                builder, args[2], args[3], [lane + n * channel if channel < 2 else 0 for channel, lane in where]
            )
            values = _shuffle(
                builder, pair, args[4], [i if channel < 2 else n + lane for i, (channel, lane) in enumerate(where)]
            )
            start = builder.add(args[1], ir.Constant(args[1].type, part * n))
            pointer, align = _pointer(context, builder, array, args[0], start, n)
            builder.store(values, pointer, align=align)
        return context.get_dummy_value()

    return types.none(array, types.intp, red, green, blue), emit


def _arithmetic(symbol, instruction):
    @intrinsic
    def elementwise(typing, a, b):
        def emit(context, builder, signature, args):
            if a.dtype in types.integer_domain:
                return getattr(builder, instruction)(*args)
            return getattr(builder, "f" + instruction)(*args, flags=CONTRACT)

        return a(a, b), emit

    @overload(symbol, inline="always")
    def implementation(a, b):
        if isinstance(a, Vector) and isinstance(b, Vector):
            return lambda a, b: elementwise(a, b)


_arithmetic(operator.add, "add")
_arithmetic(operator.sub, "sub")
_arithmetic(operator.mul, "mul")


@intrinsic
def splat(typing, value, like):
    def emit(context, builder, signature, args):
        scalar = context.cast(builder, args[0], value, like.dtype)
        vector_type = ir.VectorType(scalar.type, like.count)
        first = builder.insert_element(ir.Constant(vector_type, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
        return _shuffle(builder, first, first, [0] * like.count)

    return like(value, like), emit


@intrinsic
def bounded(typing, value, low, high):
    def emit(context, builder, signature, args):
        v, low_value, high_value = args
        v = builder.select(builder.fcmp_ordered(">", v, low_value), v, low_value)
        return builder.select(builder.fcmp_ordered("<", v, high_value), v, high_value)

    return value(value, value, value), emit


@intrinsic
def at_least(typing, value, threshold, then, otherwise):
    def emit(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">=", args[0], args[1]), args[2], args[3])

    return then(value, value, then, then), emit


@intrinsic
def index(typing, value):
    def emit(context, builder, signature, args):
        return builder.fptosi(args[0], context.get_value_type(value.integers))

    return value.integers(value), emit


@intrinsic
def lookup(typing, array, offset, chunks, where):
    vector = _vector_of(array)
    n = vector.count

    def permuted(builder, table, lane):
        result = ir.Constant(table.type, ir.Undefined)
        for i in range(n):
            position = ir.Constant(ir.IntType(32), i)
            entry = builder.extract_element(table, builder.extract_element(lane, position))
            result = builder.insert_element(result, entry, position)
        return result

    def emit(context, builder, signature, args):
        array_value, start, _, k = args
        lane = builder.and_(k, _constant(k.type, n - 1))
        result = None
        for chunk in range(len(chunks)):
            begin = builder.add(start, ir.Constant(start.type, chunk * n))
            pointer, align = _pointer(context, builder, array, array_value, begin, n)
            entries = permuted(builder, builder.load(pointer, align=align), lane)
            if chunk:
                inside = builder.icmp_signed(">=", k, _constant(k.type, chunk * n))
                entries = builder.select(inside, entries, result)
            result = entries
        return result

    return vector(array, types.intp, chunks, where), emit


@intrinsic
def accumulate(typing, array, offset, copy, where, x, y):
    def emit(context, builder, signature, args):
        array_value, start, size, k, xs, ys = args
        for lane in range(where.count):
            if lane and lane % COPIES == 0:
                start = args[1]
            entry = builder.extract_element(k, ir.Constant(ir.IntType(32), lane))
            if entry.type.width < start.type.width:
                entry = builder.sext(entry, start.type)
            place = builder.add(start, builder.add(entry, entry))
            pointer, align = _pointer(context, builder, array, array_value, place, 2)
            both = _shuffle(builder, xs, ys, [lane, x.count + lane])
            builder.store(builder.fadd(builder.load(pointer, align=align), both), pointer, align=align)
            start = builder.add(start, size)
        return context.get_dummy_value()

    return types.none(array, types.intp, types.intp, where, x, y), emit
