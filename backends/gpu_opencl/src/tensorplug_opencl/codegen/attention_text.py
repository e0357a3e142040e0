"""The OpenCL programs: text with the sizes of rows and groups written into it.

A vector holds one number for each row of a tile. ``R`` rows stay with a work-item, ``T`` stream
by at a time; ``D`` and ``DV`` are the widths of k and v, rounded up to whole vectors.

What the two innermost loops add to must stay in registers. So rows are unrolled there, and vectors
are read as what a pointer points to: ``vload`` is a call that some drivers do not inline, and then
all registers go to memory and back around it. Either alone gains little, both a factor of two.
Without the hint, Intel's compiler makes vectors of work-items, and of these vectors numbers: three
times the time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tensorplug_opencl.codegen import ctypes

# How an element, and a vector of n, is read, and how a number is rounded to an element, by the C
# type of narrow floats; ushort: bfloat16, the upper half of a float.
_ACCESS: Final = {
    "half": ("vload_half(at, p)", "vload_half{n}(0, p)", "vstore_half(value, at, p)"),
    "ushort": (
        "as_float((uint)(p)[at] << 16)",
        "as_float{n}(convert_uint{n}(vload{n}(0, p)) << 16)",
        "(p)[at] = TO_BFLOAT16(value)",
    ),
}


class Sizes(NamedTuple):
    """Widths of k and v, work-items in a group, rows of a work-item."""

    width: int
    of_v: int
    items: int
    rows: int


def text(
    body: str,
    title: str,
    sizes: Sizes,
    *,
    stored: str,
    computed: str,
    bias: bool,
    mask: bool,
    lengths: str,
) -> str:
    """Return a whole program; widths that round up to the same share it.

    ``lengths``: their C type, or nothing.
    """
    tile = vector(computed)
    load, elements, store = _ACCESS.get(stored, ("(p)[at]", "vload{n}(0, p)", "(p)[at] = (value)"))
    definitions = {
        "T": tile,
        "D": max(-(-sizes.width // tile), 1) * tile,
        "DV": max(-(-sizes.of_v // tile), 1) * tile,
        "G": sizes.items,
        "R": sizes.rows,
        "LOAD(p, at)": load,
        "STORE(value, p, at)": store,
        "ELEMS(p)": elements.format(n=tile),
        "VLOAD(p)": f"vload{tile}(0, p)",
        "VSTORE(value, p)": f"vstore{tile}(value, 0, p)",
        "BIAS": int(bias),
        "MASK": int(mask),
        "LENGTHS": int(bool(lengths)),
        "LARGEST(x)": _folded(tile, "fmax({}, {})"),
        "TOTAL(x)": _folded(tile, "({} + {})"),
    }
    lines = [f"// {title}", *(f"#define {name} {value}" for name, value in definitions.items())]
    types = f"typedef {computed} real;\ntypedef {computed}{tile} vec;\ntypedef {stored} elem;"
    types += f"\ntypedef {lengths or 'int'} counted;"
    return "\n".join([*lines, ctypes.BFLOAT16, types, _COMMON, body])


def vector(computed: str) -> int:
    """Return how many numbers a vector holds."""
    return 8 if computed == "double" else 16


def _folded(count: int, pattern: str) -> str:
    """Return an expression for the sum, say, of the numbers of a vector ``x``, in pairs."""
    parts = [f"(x).s{number:x}" for number in range(count)]
    while len(parts) > 1:
        parts = [pattern.format(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


_COMMON: Final = """
// The arguments that follow the arrays.
#define CALL const uint n_q, const uint n_k, const uint width, const uint of_v, \\
    const uint sharing, const uint causal, const uint groups, const real scale, \\
    const long8 shape, const long8 bias_by, const long8 mask_by, const long8 lengths_by, \\
    const long8 steps

// Heads that share keys are rows of one: the queries of the first, then those of the second, ...
#define N_R (sharing * n_q)
#define QUERY(i) ((i) % n_q)
#define LOWEST(i, count) (QUERY(i) + (count) <= n_q ? QUERY(i) : 0)
#define HIGHEST(i, count) (long)(QUERY(i) + (count) <= n_q ? QUERY(i) + (count) - 1 : n_q - 1)

// Where feature c of a row of x lies, of `count` rows with n features.
#define AT(x_at, row, count, n, c) (x_at + (head * (count) + (row)) * (n) + (c))

#if BIAS
#define BIAS_INPUT global const elem *bias, const long bias_at,
#else
#define BIAS_INPUT
#endif
#if MASK
#define MASK_INPUT global const uchar *mask, const long mask_at,
#else
#define MASK_INPUT
#endif

#if LENGTHS
#define LENGTHS_INPUT global const counted *lengths, const long lengths_at,
#define FIND_LENGTH const long given = lengths[lengths_at + place(head, shape, lengths_by)]; \\
    const long seen = min(given, (long)n_k), behind = given - n_q;
#else
#define LENGTHS_INPUT
#define FIND_LENGTH const long seen = n_k, behind = 0;
#endif

// The last key that row i sees, and where the keys end that any of some rows sees.
#define LAST(i) (causal ? min(seen - 1, (long)QUERY(i) + behind) : seen - 1)
#define END(i, count) (uint)max(causal ? min(seen, HIGHEST(i, count) + 1 + behind) : seen, 0L)

// Bring rows of x, from `first` on, as a tile: KEEP puts each `value`, feature c of row t.
#define BRING(x, x_at, first, count, n, N, KEEP) \\
  for (uint slot = get_local_id(0); slot < T * (N); slot += G) { \\
    const uint t = slot / (N), c = slot % (N); \\
    const bool there = (first) + t < (count) && c < (n); \\
    const real value = there ? LOAD(x, AT(x_at, (first) + t, count, n, c)) : 0; \\
    KEEP; \\
  }

// Take row r of x, which stays here.
#define TAKE(x, x_at, row, count, n, N, mine, by) \\
  for (uint c = 0; c < (N); ++c) \\
    mine[c] = (row) < (count) && c < (n) ? LOAD(x, AT(x_at, row, count, n, c)) * (by) : 0;

// Put row r of x, of which vectors are here.
#define PUT(x, x_at, row, count, n, N, mine, by) \\
  if ((row) < (count)) { \\
    real whole[N]; \\
    for (uint c = 0; c < (N) / T; ++c) VSTORE(mine[c] * (by), whole + c * T); \\
    for (uint c = 0; c < (n); ++c) STORE(whole[c], x, AT(x_at, row, count, n, c)); \\
  }

// How far from its start what belongs to a head lies.
inline long place(const long head, const long8 shape, const long8 by) {
  long sizes[8], distances[8], left = head, found = 0;
  vstore8(shape, 0, sizes);
  vstore8(by, 0, distances);
  for (int axis = 7; axis >= 0; --axis) {
    found += left % sizes[axis] * distances[axis];
    left /= sizes[axis];
  }
  return found;
}

// Score s of query i and key j, once masks and bias have had their say.
#if BIAS
#define BIASED(s, i, j) s + LOAD(bias, \\
    bias_from + (i) / n_q * steps.s2 + QUERY(i) * steps.s0 + (j) * steps.s1)
#else
#define BIASED(s, i, j) s
#endif
#if MASK
#define SEEN(i, j) ((i) < N_R && (long)(j) <= LAST(i) \\
    && mask[mask_from + (i) / n_q * steps.s5 + QUERY(i) * steps.s3 + (j) * steps.s4])
#else
#define SEEN(i, j) ((i) < N_R && (long)(j) <= LAST(i))
#endif
#if BIAS
#define FIND_BIAS const long bias_from = bias_at + place(head, shape, bias_by);
#else
#define FIND_BIAS
#endif
#if MASK
#define FIND_MASK const long mask_from = mask_at + place(head, shape, mask_by);
#else
#define FIND_MASK
#endif
#define MASKED(s, i, j) (SEEN(i, j) ? BIASED(s, i, j) : (real)-INFINITY)

// Whether all of T x R scores are seen and as they are: then nothing need be asked of each.
#define PLAIN(first_i, count_i, first_j, count_j) (!BIAS && !MASK \\
    && (first_i) + (count_i) <= N_R && (long)((first_j) + (count_j)) <= seen \\
    && !(causal && (long)((first_j) + (count_j)) > LOWEST(first_i, count_i) + 1 + behind))

// What a tile holds beyond the last row counts as 0, also where that would be 0 times infinity.
#define CUT(numbers, first, count) \\
  for (uint t = 0; t < T; ++t) if ((first) + t >= (count)) numbers[t] = 0;

// What work-items share, and a vector of it.
#define SHARED(name, size) local real name[size] __attribute__((aligned(sizeof(vec))))
#define VECTOR(p) (*(local const vec *)(p))

#define KERNEL __attribute__((vec_type_hint(vec))) kernel void
#define EACH_ROW _Pragma("unroll") for (uint r = 0; r < R; ++r)

// Products of what stays, row by row, with a tile's columns: a score for each row of the tile.
#define PRODUCTS(result, mine, columns, N) \\
  for (uint r = 0; r < R; ++r) result[r] = 0; \\
  for (uint c = 0; c < (N); ++c) { \\
    const vec column = VECTOR(columns + c * T); \\
    EACH_ROW result[r] += mine[r][c] * column; \\
  }

// Rows of the tile, times a factor each, added to what each row here has.
#define ADD_UP(sums, factors, rows, N) \\
  for (uint c = 0; c < (N) / T; ++c) \\
    for (uint t = 0; t < T; ++t) { \\
      const vec part = VECTOR(rows + t * (N) + c * T); \\
      EACH_ROW sums[r][c] += factors[r][t] * part; \\
    }

#define HEAD const long head = get_group_id(0) / groups
#define FIRST ((uint)(get_group_id(0) % groups) * (G * R))
"""

FORWARD: Final = """
KERNEL run(global const elem *q, const long q_at, global const elem *k, const long k_at,
                global const elem *v, const long v_at, BIAS_INPUT MASK_INPUT LENGTHS_INPUT
                global elem *y, const long y_at, global real *rows, const long rows_at, CALL) {
  SHARED(k_columns, D * T); SHARED(v_rows, T * DV);
  HEAD;
  FIND_BIAS FIND_MASK FIND_LENGTH
  const uint first = FIRST, own = first + get_local_id(0) * R;
  real mine[R][D], top[R], total[R], share[R][T];
  vec sums[R][DV / T], s[R];
  for (uint r = 0; r < R; ++r) {
    TAKE(q, q_at, own + r, N_R, width, D, mine[r], scale)
    top[r] = -INFINITY;
    total[r] = 0;
    for (uint c = 0; c < DV / T; ++c) sums[r][c] = 0;
  }
  const uint end = END(first, G * R);
  for (uint j = 0; j < end; j += T) {
    BRING(k, k_at, j, n_k, width, D, k_columns[c * T + t] = value)
    BRING(v, v_at, j, n_k, of_v, DV, v_rows[slot] = value)
    barrier(CLK_LOCAL_MEM_FENCE);
    PRODUCTS(s, mine, k_columns, D)
    const bool plain = PLAIN(own, R, j, T);
    for (uint r = 0; r < R; ++r) {
      if (!plain) {
        VSTORE(s[r], share[r]);
        for (uint t = 0; t < T; ++t) share[r][t] = MASKED(share[r][t], own + r, j + t);
        s[r] = VLOAD(share[r]);
      }
      const real higher = fmax(top[r], LARGEST(s[r]));
      const real from = higher == -INFINITY ? 0 : higher;
      const real shrunk = exp(top[r] - from);
      s[r] = exp(s[r] - from);
      VSTORE(s[r], share[r]);
      total[r] = total[r] * shrunk + TOTAL(s[r]);
      top[r] = higher;
      for (uint c = 0; c < DV / T; ++c) sums[r][c] *= shrunk;
    }
    ADD_UP(sums, share, v_rows, DV)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint r = 0; r < R; ++r) {
    const real by = total[r] == 0 ? 0 : 1 / total[r];
    PUT(y, y_at, own + r, N_R, of_v, DV, sums[r], by)
    if (own + r < N_R) rows[rows_at + head * N_R + own + r] = top[r] + log(total[r]);
  }
}
"""

OF_Q: Final = """
KERNEL run(global const elem *q, const long q_at, global const elem *k, const long k_at,
                global const elem *v, const long v_at, global const elem *dy, const long dy_at,
                global const real *rows, const long rows_at,
                global const real *delta, const long delta_at, BIAS_INPUT MASK_INPUT LENGTHS_INPUT
                global elem *dq, const long dq_at, CALL) {
  SHARED(k_columns, D * T); SHARED(k_rows, T * D); SHARED(v_columns, DV * T);
  HEAD;
  FIND_BIAS FIND_MASK FIND_LENGTH
  const uint first = FIRST, own = first + get_local_id(0) * R;
  real mine[R][D], above[R][DV], row[R], shift[R], slope[R][T];
  vec sums[R][D / T], s[R], ds[R];
  for (uint r = 0; r < R; ++r) {
    TAKE(q, q_at, own + r, N_R, width, D, mine[r], scale)
    TAKE(dy, dy_at, own + r, N_R, of_v, DV, above[r], 1)
    const long at = head * N_R + min(own + r, N_R - 1);
    row[r] = rows[rows_at + at] == -INFINITY ? INFINITY : rows[rows_at + at];
    shift[r] = delta[delta_at + at];
    for (uint c = 0; c < D / T; ++c) sums[r][c] = 0;
  }
  const uint end = END(first, G * R);
  for (uint j = 0; j < end; j += T) {
    BRING(k, k_at, j, n_k, width, D, k_rows[slot] = value; k_columns[c * T + t] = value)
    BRING(v, v_at, j, n_k, of_v, DV, v_columns[c * T + t] = value)
    barrier(CLK_LOCAL_MEM_FENCE);
    PRODUCTS(s, mine, k_columns, D)
    PRODUCTS(ds, above, v_columns, DV)
    const bool plain = PLAIN(own, R, j, T);
    for (uint r = 0; r < R; ++r) {
      if (!plain) {
        VSTORE(s[r], slope[r]);
        for (uint t = 0; t < T; ++t) slope[r][t] = MASKED(slope[r][t], own + r, j + t);
        s[r] = VLOAD(slope[r]);
      }
      VSTORE(exp(s[r] - row[r]) * (ds[r] - shift[r]), slope[r]);
      if (!plain) CUT(slope[r], j, n_k)
    }
    ADD_UP(sums, slope, k_rows, D)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint r = 0; r < R; ++r) PUT(dq, dq_at, own + r, N_R, width, D, sums[r], scale)
}
"""

OF_KV: Final = """
KERNEL run(global const elem *q, const long q_at, global const elem *k, const long k_at,
                global const elem *v, const long v_at, global const elem *dy, const long dy_at,
                global const real *rows, const long rows_at,
                global const real *delta, const long delta_at, BIAS_INPUT MASK_INPUT LENGTHS_INPUT
                global elem *dk, const long dk_at, global elem *dv, const long dv_at, CALL) {
  SHARED(q_columns, D * T); SHARED(q_rows, T * D);
  SHARED(dy_columns, DV * T); SHARED(dy_rows, T * DV); SHARED(row, T); SHARED(shift, T);
  HEAD;
  FIND_BIAS FIND_MASK FIND_LENGTH
  const uint first = FIRST, own = first + get_local_id(0) * R;
  real mine[R][D], mine_v[R][DV], share[R][T], slope[R][T];
  vec sums[R][D / T], sums_v[R][DV / T], s[R], ds[R];
  for (uint r = 0; r < R; ++r) {
    TAKE(k, k_at, own + r, n_k, width, D, mine[r], 1)
    TAKE(v, v_at, own + r, n_k, of_v, DV, mine_v[r], 1)
    for (uint c = 0; c < D / T; ++c) sums[r][c] = 0;
    for (uint c = 0; c < DV / T; ++c) sums_v[r][c] = 0;
  }
  for (uint i = 0; i < N_R; i += T) {
    if ((long)first >= seen || (causal && HIGHEST(i, T) + behind < (long)first)) continue;
    BRING(q, q_at, i, N_R, width, D,
          q_rows[slot] = value * scale; q_columns[c * T + t] = value * scale)
    BRING(dy, dy_at, i, N_R, of_v, DV, dy_rows[slot] = value; dy_columns[c * T + t] = value)
    for (uint t = get_local_id(0); t < T; t += G) {
      const long at = head * N_R + min(i + t, N_R - 1);
      row[t] = rows[rows_at + at] == -INFINITY ? INFINITY : rows[rows_at + at];
      shift[t] = delta[delta_at + at];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    PRODUCTS(s, mine, q_columns, D)
    PRODUCTS(ds, mine_v, dy_columns, DV)
    const bool plain = PLAIN(i, T, own, R);
    for (uint r = 0; r < R; ++r) {
      if (!plain) {
        VSTORE(s[r], share[r]);
        for (uint t = 0; t < T; ++t) share[r][t] = MASKED(share[r][t], i + t, own + r);
        s[r] = VLOAD(share[r]);
      }
      s[r] = exp(s[r] - VECTOR(row));
      VSTORE(s[r], share[r]);
      VSTORE(s[r] * (ds[r] - VECTOR(shift)), slope[r]);
      if (!plain) CUT(slope[r], i, N_R)
    }
    ADD_UP(sums, slope, q_rows, D)
    ADD_UP(sums_v, share, dy_rows, DV)
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint r = 0; r < R; ++r) {
    PUT(dk, dk_at, own + r, n_k, width, D, sums[r], 1)
    PUT(dv, dv_at, own + r, n_k, of_v, DV, sums_v[r], 1)
  }
}
"""
