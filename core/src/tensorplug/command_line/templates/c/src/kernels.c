/* The kernels, and at the end the table of them. REPLACE one after the other.

   A kernel gets dense tensors of bool, int32 or float32, the dtypes of tp_dtypes() below. Numbers of
   kernels that are not elementwise pass through double, which holds all three exactly. Integers wrap, as
   unsigned ones do in C. */
#include "device.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 64 };

/* Tensors ----------------------------------------------------------------------------------- */

/* Return the number of elements along the axes from `begin` up to `end`. */
static int64_t count(const tp_tensor *x, int32_t begin, int32_t end)
{
    int64_t elements = 1;
    for (int32_t axis = begin; axis < end; axis++)
        elements *= x->shape[axis];
    return elements;
}

static int64_t size(const tp_tensor *x) { return count(x, 0, x->ndim); }

static int64_t width(const tp_tensor *x) { return x->dtype.bits / 8; }

static double get(const tp_tensor *x, int64_t at)
{
    switch (x->dtype.code) {
    case TP_BOOL: return ((const uint8_t *)x->data)[at];
    case TP_INT: return ((const int32_t *)x->data)[at];
    default: return ((const float *)x->data)[at];
    }
}

static void put(const tp_tensor *x, int64_t at, tp_number value)
{
    switch (x->dtype.code) {
    case TP_BOOL: ((uint8_t *)x->data)[at] = value.f != 0; break;
    case TP_INT: ((int32_t *)x->data)[at] = (int32_t)value.i; break;
    default: ((float *)x->data)[at] = (float)value.f;
    }
}

static int32_t wrap(uint32_t x) { return (int32_t)x; }

/* A loop over n elements of each operand, the output first. */
typedef void (*row)(void *const *at, const int64_t *step, int64_t n);

/* Run a loop along the last axis of the output, for all places on its other axes. */
static tp_status each_row(row loop, const tp_tensor *operands, int32_t n_operands)
{
    const tp_tensor *out = &operands[0];
    if (size(out) == 0)
        return TP_OK;
    int32_t last = out->ndim - 1;
    int64_t place[MOST_AXES] = {0}, step[4];
    void *at[4];
    for (int32_t i = 0; i < n_operands; i++) {
        at[i] = operands[i].data;
        step[i] = last < 0 ? 0 : operands[i].strides[last];
    }
    for (;;) {
        loop(at, step, last < 0 ? 1 : out->shape[last]);
        int32_t axis = last - 1;
        for (; axis >= 0; axis--) {
            bool more = ++place[axis] < out->shape[axis];
            int64_t moves = more ? 1 : 1 - out->shape[axis];
            for (int32_t i = 0; i < n_operands; i++)
                at[i] = (char *)at[i] + moves * operands[i].strides[axis] * width(&operands[i]);
            if (more)
                break;
            place[axis] = 0;
        }
        if (axis < 0)
            return TP_OK;
    }
}

/* Run the loop for the dtype of the last input; NULL where the spec does not allow it. */
static tp_status elementwise(const tp_call *call, row of_bool, row of_int, row of_float)
{
    tp_tensor operands[4];
    operands[0] = call->outputs[0];
    memcpy(&operands[1], call->inputs, (size_t)call->n_inputs * sizeof *operands);
    switch (operands[call->n_inputs].dtype.code) {
    case TP_BOOL: return each_row(of_bool, operands, call->n_inputs + 1);
    case TP_INT: return each_row(of_int, operands, call->n_inputs + 1);
    default: return each_row(of_float, operands, call->n_inputs + 1);
    }
}

/* Define a loop: OUT out = RESULT, of an element x, or of elements a and b. */
#define UNARY_LOOP(NAME, OUT, IN, RESULT)                                     \
    static void NAME(void *const *at, const int64_t *step, int64_t n)         \
    {                                                                         \
        OUT *out = at[0];                                                     \
        const IN *input = at[1];                                              \
        for (int64_t i = 0; i < n; i++) {                                     \
            const IN x = input[i * step[1]];                                  \
            out[i * step[0]] = (OUT)(RESULT);                                 \
        }                                                                     \
    }
#define BINARY_LOOP(NAME, OUT, IN, RESULT)                                    \
    static void NAME(void *const *at, const int64_t *step, int64_t n)         \
    {                                                                         \
        OUT *out = at[0];                                                     \
        const IN *first = at[1], *second = at[2];                             \
        for (int64_t i = 0; i < n; i++) {                                     \
            const IN a = first[i * step[1]], b = second[i * step[2]];         \
            out[i * step[0]] = (OUT)(RESULT);                                 \
        }                                                                     \
    }

/* Elementwise kernels ----------------------------------------------------------------------- */

/* Define a kernel of numbers, by its result for int32 and for float32. */
#define UNARY(NAME, OF_INT, OF_FLOAT)                                         \
    UNARY_LOOP(NAME##_int, int32_t, int32_t, OF_INT)                          \
    UNARY_LOOP(NAME##_float, float, float, OF_FLOAT)                          \
    static tp_status NAME(const tp_call *call)                                \
    {                                                                         \
        return elementwise(call, NULL, NAME##_int, NAME##_float);             \
    }
#define BINARY(NAME, OF_INT, OF_FLOAT)                                        \
    BINARY_LOOP(NAME##_int, int32_t, int32_t, OF_INT)                         \
    BINARY_LOOP(NAME##_float, float, float, OF_FLOAT)                         \
    static tp_status NAME(const tp_call *call)                                \
    {                                                                         \
        return elementwise(call, NULL, NAME##_int, NAME##_float);             \
    }
/* Define a kernel of floats: tensorplug converts integers before. Double rounds to the nearest float. */
#define FLOATING(NAME, FUNCTION)                                              \
    UNARY_LOOP(NAME##_float, float, float, FUNCTION((double)x))               \
    static tp_status NAME(const tp_call *call)                                \
    {                                                                         \
        return elementwise(call, NULL, NULL, NAME##_float);                   \
    }

UNARY(negative, wrap(0u - (uint32_t)x), -x)
UNARY(absolute, x < 0 ? wrap(0u - (uint32_t)x) : x, fabsf(x))
UNARY(floor_, x, floorf(x))
FLOATING(exp_, exp)
FLOATING(log_, log)
FLOATING(sqrt_, sqrt)
FLOATING(sin_, sin)
FLOATING(cos_, cos)
FLOATING(atan_, atan)
FLOATING(erf_, erf)

BINARY(add, wrap((uint32_t)a + (uint32_t)b), a + b)
BINARY(subtract, wrap((uint32_t)a - (uint32_t)b), a - b)
BINARY(multiply, wrap((uint32_t)a * (uint32_t)b), a * b)
BINARY(maximum, a > b ? a : b, a > b || isnan(a) ? a : b)

/* The quotient is rounded down, and the remainder has the sign of the divisor, as in Python. */
static int32_t floor_divide_ints(int32_t a, int32_t b)
{
    if (b == 0)
        return 0;
    int64_t quotient = (int64_t)a / b;
    return wrap((uint32_t)(quotient - ((int64_t)a % b != 0 && (a < 0) != (b < 0))));
}

static int32_t modulo_ints(int32_t a, int32_t b)
{
    int64_t rest = b == 0 ? 0 : (int64_t)a % b;
    return (int32_t)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

static double modulo_floats(double a, double b)
{
    double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double floor_divide_floats(double a, double b)
{
    if (b == 0 || isinf(a))
        return a / b;
    double rest = fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    return quotient == 0 ? copysign(0, a / b) : floor(quotient + 0.5);
}

BINARY(floor_divide, floor_divide_ints(a, b), floor_divide_floats(a, b))
BINARY(modulo, modulo_ints(a, b), modulo_floats(a, b))

static int32_t power_ints(int32_t a, int32_t b)
{
    if (b < 0) /* 1 / a**-b, rounded towards 0 */
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint32_t result = 1, square = (uint32_t)a;
    for (; b; b >>= 1, square *= square)
        if (b & 1)
            result *= square;
    return wrap(result);
}

BINARY(power, power_ints(a, b), pow((double)a, (double)b))

BINARY_LOOP(divide_float, float, float, a / b)
static tp_status divide(const tp_call *call) { return elementwise(call, NULL, NULL, divide_float); }

BINARY_LOOP(equal_bool, uint8_t, uint8_t, a == b)
BINARY_LOOP(equal_int, uint8_t, int32_t, a == b)
BINARY_LOOP(equal_float, uint8_t, float, a == b)
static tp_status equal(const tp_call *call)
{
    return elementwise(call, equal_bool, equal_int, equal_float);
}

BINARY_LOOP(less_int, uint8_t, int32_t, a < b)
BINARY_LOOP(less_float, uint8_t, float, a < b)
static tp_status less(const tp_call *call) { return elementwise(call, NULL, less_int, less_float); }

BINARY_LOOP(and_bool, uint8_t, uint8_t, a && b)
static tp_status and_(const tp_call *call) { return elementwise(call, and_bool, NULL, NULL); }

UNARY_LOOP(not_bool, uint8_t, uint8_t, !x)
static tp_status not_(const tp_call *call) { return elementwise(call, not_bool, NULL, NULL); }

#define SELECT_LOOP(NAME, TYPE)                                               \
    static void NAME(void *const *at, const int64_t *step, int64_t n)         \
    {                                                                         \
        TYPE *out = at[0];                                                    \
        const uint8_t *condition = at[1];                                     \
        const TYPE *t = at[2], *e = at[3];                                    \
        for (int64_t i = 0; i < n; i++)                                       \
            out[i * step[0]] = condition[i * step[1]] ? t[i * step[2]] : e[i * step[3]]; \
    }
SELECT_LOOP(select_bool, uint8_t)
SELECT_LOOP(select_word, uint32_t) /* moves every bit of a float, those of a NaN too */
static tp_status select_(const tp_call *call)
{
    return elementwise(call, select_bool, select_word, select_word);
}

/* A float becomes an integer by dropping its fraction, modulo 2**32; NaN and infinity become 0. */
static int32_t to_int(double x)
{
    double whole = isfinite(x) ? fmod(trunc(x), 4294967296.0) : 0;
    return wrap((uint32_t)(int64_t)whole);
}

UNARY_LOOP(copy_byte, uint8_t, uint8_t, x)
UNARY_LOOP(copy_word, uint32_t, uint32_t, x)
UNARY_LOOP(bool_to_int, int32_t, uint8_t, x)
UNARY_LOOP(bool_to_float, float, uint8_t, x)
UNARY_LOOP(int_to_bool, uint8_t, int32_t, x != 0)
UNARY_LOOP(int_to_float, float, int32_t, x)
UNARY_LOOP(float_to_bool, uint8_t, float, x != 0)
UNARY_LOOP(float_to_int, int32_t, float, to_int(x))
static tp_status cast(const tp_call *call)
{
    switch (call->outputs[0].dtype.code) {
    case TP_BOOL: return elementwise(call, copy_byte, int_to_bool, float_to_bool);
    case TP_INT: return elementwise(call, bool_to_int, copy_word, float_to_int);
    default: return elementwise(call, bool_to_float, int_to_float, copy_word);
    }
}

static tp_status fill(const tp_call *call) /* attribute: the value */
{
    for (int64_t at = 0; at < size(&call->outputs[0]); at++)
        put(&call->outputs[0], at, call->attributes[0]);
    return TP_OK;
}

static tp_status range(const tp_call *call) /* attributes: start, step */
{
    const tp_number *start = &call->attributes[0], *step = &call->attributes[1];
    bool whole = (double)start->i == start->f && (double)step->i == step->f;
    for (int64_t at = 0; at < size(&call->outputs[0]); at++) {
        tp_number value = {.f = (double)at * step->f + start->f};
        value.i = whole ? (int64_t)((uint64_t)start->i + (uint64_t)at * (uint64_t)step->i)
                        : to_int(value.f);
        put(&call->outputs[0], at, value);
    }
    return TP_OK;
}

/* Kernels that move elements ---------------------------------------------------------------- */

static tp_status copy(const tp_tensor *out, const tp_tensor *x)
{
    const tp_tensor operands[] = {*out, *x};
    return each_row(width(out) == 1 ? copy_byte : copy_word, operands, 2);
}

/* Return a part of a tensor, which begins `elements` after its beginning. */
static tp_tensor from(const tp_tensor *x, int64_t elements)
{
    tp_tensor part = *x;
    part.data = (char *)x->data + elements * width(x);
    return part;
}

static tp_status broadcast(const tp_call *call) { return copy(&call->outputs[0], &call->inputs[0]); }

static tp_status transpose(const tp_call *call) /* attribute: an axis of x for each of the output */
{
    tp_tensor x = call->inputs[0];
    int64_t strides[MOST_AXES];
    for (int32_t axis = 0; axis < x.ndim; axis++)
        strides[axis] = x.strides[call->attributes[axis].i];
    x.strides = strides;
    return copy(&call->outputs[0], &x);
}

static tp_status slice(const tp_call *call) /* attribute: where the slice begins, for each axis */
{
    const tp_tensor *x = &call->inputs[0];
    int64_t begin = 0;
    for (int32_t axis = 0; axis < x->ndim; axis++)
        begin += call->attributes[axis].i * x->strides[axis];
    if (size(&call->outputs[0]) == 0)
        return TP_OK;
    tp_tensor part = from(x, begin);
    return copy(&call->outputs[0], &part);
}

static tp_status pad(const tp_call *call) /* attributes: before and after for each axis; the padding */
{
    const tp_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t begin = 0;
    for (int32_t axis = 0; axis < x->ndim; axis++)
        begin += call->attributes[2 * axis].i * out->strides[axis];
    for (int64_t at = 0; at < size(out); at++)
        put(out, at, call->attributes[2 * x->ndim]);
    if (size(x) == 0)
        return TP_OK;
    tp_tensor middle = from(out, begin);
    middle.shape = x->shape;
    return copy(&middle, x);
}

static tp_status concat(const tp_call *call) /* attribute: the axis */
{
    const tp_tensor *out = &call->outputs[0];
    int32_t axis = (int32_t)call->attributes[0].i;
    int64_t begin = 0;
    for (int32_t i = 0; i < call->n_inputs; i++) {
        const tp_tensor *x = &call->inputs[i];
        tp_tensor part = from(out, size(x) ? begin : 0);
        part.shape = x->shape;
        copy(&part, x);
        begin += x->shape[axis] * out->strides[axis];
    }
    return TP_OK;
}

/* Read an index along an axis; those below 0 count from the end. */
static tp_status read_index(const tp_tensor *indices, int64_t at, int64_t length, int64_t *index)
{
    int64_t given = ((const int32_t *)indices->data)[at];
    *index = given < 0 ? given + length : given;
    if (*index < 0 || *index >= length)
        return fail(TP_OUT_OF_RANGE, "index %lld is out of range for an axis of length %lld",
                    (long long)given, (long long)length);
    return TP_OK;
}

static tp_status gather(const tp_call *call) /* attributes: the axis, the number of batch axes */
{
    const tp_tensor *x = &call->inputs[0], *indices = &call->inputs[1];
    int32_t axis = (int32_t)call->attributes[0].i, batches = (int32_t)call->attributes[1].i;
    int64_t batch = count(x, 0, batches), before = count(x, batches, axis);
    int64_t length = x->shape[axis], picks = count(indices, batches, indices->ndim);
    size_t block = (size_t)(count(x, axis + 1, x->ndim) * width(x));
    char *out = call->outputs[0].data;
    for (int64_t at = 0, index; at < size(indices); at++) {
        tp_status status = read_index(indices, at, length, &index);
        if (status)
            return status;
    }
    for (int64_t outer = 0; outer < batch * before; outer++)
        for (int64_t pick = 0, index; pick < picks; pick++, out += block) {
            (void)read_index(indices, outer / before * picks + pick, length, &index);
            memcpy(out, (const char *)x->data + (size_t)(outer * length + index) * block, block);
        }
    return TP_OK;
}

/* Add slices at positions. Each index has as many numbers as the updates' slices lack axes. */
static tp_status scatter(const tp_call *call)
{
    const tp_tensor *indices = &call->inputs[0], *updates = &call->inputs[1], *out = &call->outputs[0];
    int32_t depth = indices->ndim ? (int32_t)indices->shape[indices->ndim - 1] : 1;
    if (indices->ndim == 1 && out->ndim && updates->ndim == out->ndim
        && updates->shape[0] == indices->shape[0]
        && count(updates, 1, updates->ndim) == count(out, 1, out->ndim))
        depth = 1; /* one number for each update */
    int64_t block = count(out, depth, out->ndim);
    int64_t slices = count(updates, 0, updates->ndim - (out->ndim - depth));
    double *sums = calloc((size_t)size(out) + 1, sizeof *sums); /* exact for integers below 2**53 */
    if (!sums)
        return fail(TP_OUT_OF_MEMORY, "no room for the sums");
    tp_status status = TP_OK;
    for (int64_t slice = 0; slice < slices && !status; slice++) {
        int64_t place = 0;
        for (int32_t axis = 0; axis < depth && !status; axis++) {
            int64_t index = 0;
            status = read_index(indices, slice * depth + axis, out->shape[axis], &index);
            place = place * out->shape[axis] + index;
        }
        for (int64_t i = 0; i < block && !status; i++)
            sums[place * block + i] += get(updates, slice * block + i);
    }
    for (int64_t at = 0; at < size(out) && !status; at++)
        put(out, at, (tp_number){.i = to_int(sums[at]), .f = sums[at]});
    free(sums);
    return status;
}

/* Kernels that reduce ----------------------------------------------------------------------- */

/* Copy x with the reduced axes last, so that each row becomes one element of the output. Attributes: the
   reduced axes. The caller frees the data. */
static tp_status reduced_last(const tp_call *call, tp_tensor *rows, int64_t *length)
{
    const tp_tensor *x = &call->inputs[0];
    int64_t shape[MOST_AXES], strides[MOST_AXES], dense[MOST_AXES], step = 1;
    int32_t kept = x->ndim - call->n_attributes, at_kept = 0, at_reduced = kept;
    for (int32_t axis = 0; axis < x->ndim; axis++) {
        bool reduced = false;
        for (int32_t i = 0; i < call->n_attributes; i++)
            reduced = reduced || call->attributes[i].i == axis;
        int32_t place = reduced ? at_reduced++ : at_kept++;
        shape[place] = x->shape[axis];
        strides[place] = x->strides[axis];
    }
    for (int32_t axis = x->ndim - 1; axis >= 0; axis--) {
        dense[axis] = step;
        step *= shape[axis];
    }
    tp_tensor moved = *x;
    moved.shape = shape;
    moved.strides = strides;
    *rows = moved;
    rows->strides = dense;
    rows->data = malloc((size_t)(size(x) * width(x)) + 1);
    if (!rows->data)
        return fail(TP_OUT_OF_MEMORY, "no room for a copy");
    *length = count(&moved, kept, x->ndim);
    return copy(rows, &moved);
}

/* Add to, multiply or compare what was found so far with the next number. */
typedef tp_number (*step)(tp_number found, tp_number next);

static tp_status reduce(const tp_call *call, tp_number first, step next)
{
    const tp_tensor *out = &call->outputs[0];
    tp_tensor rows;
    int64_t length;
    tp_status status = reduced_last(call, &rows, &length);
    for (int64_t at = 0; at < size(out) && !status; at++) {
        tp_number found = first;
        for (int64_t i = 0; i < length; i++) {
            double x = get(&rows, at * length + i);
            bool whole = rows.dtype.code != TP_FLOAT;
            found = next(found, (tp_number){.i = whole ? (int64_t)x : 0, .f = x});
        }
        put(out, at, found);
    }
    free(rows.data);
    return status;
}

static tp_number sum_step(tp_number found, tp_number next)
{
    return (tp_number){(int64_t)((uint64_t)found.i + (uint64_t)next.i), found.f + next.f};
}

static tp_number product_step(tp_number found, tp_number next)
{
    return (tp_number){(int64_t)((uint64_t)found.i * (uint64_t)next.i), found.f * next.f};
}

static tp_number max_step(tp_number found, tp_number next)
{
    return next.f > found.f || (isnan(next.f) && !isnan(found.f)) ? next : found;
}

static tp_status sum(const tp_call *call) { return reduce(call, (tp_number){0, 0}, sum_step); }
static tp_status product(const tp_call *call) { return reduce(call, (tp_number){1, 1}, product_step); }
static tp_status max(const tp_call *call)
{
    return reduce(call, (tp_number){INT32_MIN, -INFINITY}, max_step);
}

static tp_status arg_max(const tp_call *call) /* attribute: the axis. The first of equal ones wins. */
{
    const tp_tensor *x = &call->inputs[0];
    int32_t axis = (int32_t)call->attributes[0].i;
    int64_t outer = count(x, 0, axis), length = x->shape[axis], inner = count(x, axis + 1, x->ndim);
    for (int64_t at = 0; at < outer * inner; at++) {
        int64_t begin = at / inner * length * inner + at % inner, best = 0;
        double largest = get(x, begin);
        for (int64_t i = 1; i < length && !isnan(largest); i++) {
            double other = get(x, begin + i * inner);
            if (other > largest || isnan(other)) {
                largest = other;
                best = i;
            }
        }
        ((int32_t *)call->outputs[0].data)[at] = (int32_t)best;
    }
    return TP_OK;
}

typedef struct ranked {
    double key;
    int32_t index;
} ranked;

/* Larger ones first, NaN before all; equal ones in their order. */
static int compare(const void *first, const void *second)
{
    const ranked *a = first, *b = second;
    if (isnan(a->key) != isnan(b->key))
        return isnan(a->key) ? -1 : 1;
    if (a->key > b->key || a->key < b->key)
        return a->key > b->key ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static tp_status top_k(const tp_call *call) /* the k of the last axis; outputs: values, indices */
{
    const tp_tensor *x = &call->inputs[0], *values = &call->outputs[0], *indices = &call->outputs[1];
    int64_t length = x->shape[x->ndim - 1], k = values->shape[x->ndim - 1];
    ranked *order = malloc((size_t)(length + 1) * sizeof *order);
    if (!order)
        return fail(TP_OUT_OF_MEMORY, "no room to sort");
    for (int64_t outer = 0; outer < count(x, 0, x->ndim - 1); outer++) {
        for (int64_t i = 0; i < length; i++)
            order[i] = (ranked){get(x, outer * length + i), (int32_t)i};
        qsort(order, (size_t)length, sizeof *order, compare);
        for (int64_t i = 0; i < k; i++) {
            ((int32_t *)indices->data)[outer * k + i] = order[i].index;
            memcpy((char *)values->data + (outer * k + i) * width(x),
                   (const char *)x->data + (outer * length + order[i].index) * width(x),
                   (size_t)width(x));
        }
    }
    free(order);
    return TP_OK;
}

/* Products ---------------------------------------------------------------------------------- */

/* Return where the matrix of a batch begins, for a batch that may be broadcast. */
static int64_t matrix(const tp_tensor *x, const tp_tensor *out, int64_t batch)
{
    int64_t at = 0;
    for (int32_t axis = out->ndim - 3; axis >= 0; axis--) {
        int32_t own = axis - (out->ndim - x->ndim);
        if (own >= 0 && x->shape[own] > 1)
            at += batch % out->shape[axis] * x->strides[own];
        batch /= out->shape[axis];
    }
    return at;
}

static tp_status matmul(const tp_call *call) /* attributes: whether a, b are transposed */
{
    const tp_tensor *a = &call->inputs[0], *b = &call->inputs[1], *out = &call->outputs[0];
    bool ta = call->attributes[0].i != 0, tb = call->attributes[1].i != 0;
    int64_t n = out->shape[out->ndim - 2], m = out->shape[out->ndim - 1];
    int64_t depth = a->shape[a->ndim - (ta ? 2 : 1)];
    int64_t row_a = a->strides[a->ndim - (ta ? 1 : 2)], step_a = a->strides[a->ndim - (ta ? 2 : 1)];
    int64_t step_b = b->strides[b->ndim - (tb ? 1 : 2)], column_b = b->strides[b->ndim - (tb ? 2 : 1)];
    for (int64_t at = 0; at < size(out); at++) {
        int64_t batch = at / m / n;
        int64_t at_a = matrix(a, out, batch) + at / m % n * row_a;
        int64_t at_b = matrix(b, out, batch) + at % m * column_b;
        if (out->dtype.code == TP_FLOAT) {
            const float *x = (const float *)a->data + at_a, *y = (const float *)b->data + at_b;
            double total = 0;
            for (int64_t i = 0; i < depth; i++)
                total += (double)x[i * step_a] * y[i * step_b];
            ((float *)out->data)[at] = (float)total;
        } else {
            const int32_t *x = (const int32_t *)a->data + at_a, *y = (const int32_t *)b->data + at_b;
            uint32_t total = 0;
            for (int64_t i = 0; i < depth; i++)
                total += (uint32_t)x[i * step_a] * (uint32_t)y[i * step_b];
            ((int32_t *)out->data)[at] = wrap(total);
        }
    }
    return TP_OK;
}

/* The tables -------------------------------------------------------------------------------- */

const tp_kernel *tp_kernels(void)
{
    static const tp_kernel kernels[] = {
        {"Neg", 1, negative, ""},
        {"Abs", 1, absolute, ""},
        {"Floor", 1, floor_, ""},
        {"Exp", 1, exp_, ""},
        {"Log", 1, log_, ""},
        {"Sqrt", 1, sqrt_, ""},
        {"Sin", 1, sin_, ""},
        {"Cos", 1, cos_, ""},
        {"Atan", 1, atan_, ""},
        {"Erf", 1, erf_, ""},
        {"Add", 2, add, ""},
        {"Sub", 2, subtract, ""},
        {"Multiply", 2, multiply, ""},
        {"RealDiv", 2, divide, ""},
        {"FloorDiv", 2, floor_divide, ""},
        {"Mod", 2, modulo, ""},
        {"Pow", 2, power, ""},
        {"Maximum", 2, maximum, ""},
        {"Equal", 2, equal, ""},
        {"Less", 2, less, ""},
        {"LogicalAnd", 2, and_, ""},
        {"LogicalNot", 1, not_, ""},
        {"Select", 3, select_, ""},
        {"Cast", 1, cast, ""},
        {"Fill", 0, fill, "value"},
        {"Range", 0, range, "start step"},
        {"BroadcastTo", 1, broadcast, ""},
        {"Transpose", 1, transpose, "perm"},
        {"Slice", 1, slice, "begin"},
        {"PadV2", 1, pad, "paddings constant_value"},
        {"Concat", -1, concat, "axis"},
        {"GatherV2", 2, gather, "axis batch_dims"},
        {"ScatterNd", 2, scatter, ""},
        {"Sum", 1, sum, "axis"},
        {"Prod", 1, product, "axis"},
        {"Max", 1, max, "reduction_indices"},
        {"ArgMax", 1, arg_max, "axis"},
        {"BatchMatMul", 2, matmul, "transpose_a transpose_b"},
        {"TopK", 1, top_k, ""},
        {0},
    };
    return kernels;
}

const tp_dtype *tp_dtypes(void)
{
    static const tp_dtype dtypes[] = {{TP_BOOL, 8, 1}, {TP_INT, 32, 1}, {TP_FLOAT, 32, 1}, {0}};
    return dtypes;
}
