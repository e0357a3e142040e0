"""What WGSL lacks, written in it."""

from __future__ import annotations

from typing import Final

# A quotient's remainder is exact in C, but WGSL's `%` rounds the quotient.
FUNCTIONS: Final = {
    "rest": """fn rest(x: f32, y: f32) -> f32 {
  let sign = bitcast<u32>(x) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) { return bitcast<f32>(not_a_number); }
  if (a < b) { return x; }
  var e = max(i32(a >> 23u), 1);
  var f = max(i32(b >> 23u), 1);
  var m = select(a, (a & 0x7fffffu) | 0x800000u, a > 0x7fffffu);
  var n = select(b, (b & 0x7fffffu) | 0x800000u, b > 0x7fffffu);
  for (; m < 0x800000u; e -= 1) { m = m << 1u; }
  for (; n < 0x800000u; f -= 1) { n = n << 1u; }
  for (; e > f; e -= 1) { m = select(m, m - n, m >= n) << 1u; }
  m = select(m, m - n, m >= n);
  if (m == 0u) { return bitcast<f32>(sign); }
  for (; m < 0x800000u; e -= 1) { m = m << 1u; }
  m = select(m >> u32(1 - e), (m & 0x7fffffu) | (u32(e) << 23u), e > 0);
  return bitcast<f32>(sign | m);
}""",
    "copy_sign": """fn copy_sign(x: f32, y: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(y) & 0x80000000u));
}""",
    # Constants that are not finite are errors: these are variables.
    "not_a_number": "var<private> not_a_number: u32 = 0x7fc00000u;",
    "infinity": "var<private> infinity: u32 = 0x7f800000u;",
}

# A product of integers, atomically.
PRODUCT: Final = """{{
  let at = {at};
  var before = atomicLoad(&{array}[at]);
  loop {{
    let tried = atomicCompareExchangeWeak(&{array}[at], before, before * {value});
    if (tried.exchanged) {{ break; }}
    before = tried.old_value;
  }}
}}"""

# The greater or the less of two floats, atomically. NaN, told by its bits, stays.
EXTREMES: Final = """{{
  let at = {at};
  let update = bitcast<u32>({value});
  var bits = atomicLoad(&{array}[at]);
  while ((bits & 0x7fffffffu) <= 0x7f800000u && ((update & 0x7fffffffu) > 0x7f800000u
      || bitcast<f32>(update) {sign} bitcast<f32>(bits))) {{
    let tried = atomicCompareExchangeWeak(&{array}[at], bits, update);
    if (tried.exchanged) {{ break; }}
    bits = tried.old_value;
  }}
}}"""
