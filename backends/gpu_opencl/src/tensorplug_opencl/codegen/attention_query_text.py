"""The OpenCL programs for one query of R heads that share keys, as in decoding.

A work-item takes a part of the keys, where they lie; D and DV are the widths themselves. They
follow what ``attention_text`` defines.
"""

from __future__ import annotations

from typing import Final

PART: Final = 512  # keys of a work-item
QUERY: Final = (
    f"#define PART {PART}\n"
    """
KERNEL run(global const elem *q, const long q_at, global const elem *k, const long k_at,
                global const elem *v, const long v_at, LENGTHS_INPUT
                global real *parts, const long parts_at, global real *tops, const long tops_at,
                global real *totals, const long totals_at, CALL) {
  const long number = get_global_id(0), head = number / groups;
  FIND_LENGTH
  const uint first = number % groups * PART, end = min(END(0, 1), first + PART);
  vec mine[R][D / T], sums[R][DV / T];
  real top[R], total[R], share[R][T];
  for (uint r = 0; r < R; ++r) {
    for (uint c = 0; c < D / T; ++c)
      mine[r][c] = ELEMS(q + q_at + (head * R + r) * D + c * T) * scale;
    for (uint c = 0; c < DV / T; ++c) sums[r][c] = 0;
    top[r] = -INFINITY;
    total[r] = 0;
  }
  for (uint j = first; j < end; j += T) {
    for (uint t = 0; t < T; ++t) {
      const long row = k_at + (head * n_k + min(j + t, end - 1)) * D;
      vec dots[R];
      EACH_ROW dots[r] = 0;
      for (uint c = 0; c < D / T; ++c) {
        const vec key = ELEMS(k + row + c * T);
        EACH_ROW dots[r] += mine[r][c] * key;
      }
      EACH_ROW share[r][t] = j + t < end ? TOTAL(dots[r]) : -INFINITY;
    }
    for (uint r = 0; r < R; ++r) {
      vec s = VLOAD(share[r]);
      const real higher = fmax(top[r], LARGEST(s));
      const real from = higher == -INFINITY ? 0 : higher;
      const real shrunk = exp(top[r] - from);
      s = exp(s - from);
      VSTORE(s, share[r]);
      total[r] = total[r] * shrunk + TOTAL(s);
      top[r] = higher;
      for (uint c = 0; c < DV / T; ++c) sums[r][c] *= shrunk;
    }
    const uint several = min((uint)T, end - j);
    for (uint c = 0; c < DV / T; ++c) {
      vec own[R];
      EACH_ROW own[r] = sums[r][c];
      for (uint t = 0; t < several; ++t) {
        const vec value = ELEMS(v + v_at + (head * n_k + j + t) * DV + c * T);
        EACH_ROW own[r] += share[r][t] * value;
      }
      EACH_ROW sums[r][c] = own[r];
    }
  }
  for (uint r = 0; r < R; ++r) {
    const long at = number * R + r;
    for (uint c = 0; c < DV / T; ++c) VSTORE(sums[r][c], parts + parts_at + at * DV + c * T);
    tops[tops_at + at] = top[r];
    totals[totals_at + at] = total[r];
  }
}
"""
)

# The parts of a row as one.
PARTS: Final = """
KERNEL run(global const real *parts, const long parts_at,
                global const real *tops, const long tops_at,
                global const real *totals, const long totals_at,
                global elem *y, const long y_at, global real *rows, const long rows_at, CALL) {
  const long row = get_global_id(0), first = row / R * groups * R + row % R;
  real top = -INFINITY, total = 0, whole[DV];
  for (uint part = 0; part < groups; ++part) top = fmax(top, tops[tops_at + first + part * R]);
  const real from = top == -INFINITY ? 0 : top;
  vec sums[DV / T];
  for (uint c = 0; c < DV / T; ++c) sums[c] = 0;
  for (uint part = 0; part < groups; ++part) {
    const long at = first + part * R;
    const real by = exp(tops[tops_at + at] - from);
    total += by * totals[totals_at + at];
    for (uint c = 0; c < DV / T; ++c) sums[c] += by * VLOAD(parts + parts_at + at * DV + c * T);
  }
  const real by = total == 0 ? 0 : 1 / total;
  for (uint c = 0; c < DV / T; ++c) VSTORE(sums[c] * by, whole + c * T);
  for (uint c = 0; c < DV; ++c) STORE(whole[c], y, y_at + row * DV + c);
  rows[rows_at + row] = top + log(total);
}
"""
