// A table of one kernel in Rust, which halves its input: tensorplug.h as Rust spells it.

use std::os::raw::{c_char, c_void};

#[repr(C)] #[derive(Clone, Copy)] pub struct DType { code: u8, bits: u8, lanes: u16 }
#[repr(C)] pub struct Place { kind: i32, number: i32 }
#[repr(C)] pub struct Tensor {
    data: *mut c_void, place: Place, ndim: i32, dtype: DType,
    shape: *const i64, strides: *const i64, byte_offset: u64,
}
#[repr(C)] pub struct Number { i: i64, f: f64 }
#[repr(C)] pub struct Call {
    n_inputs: i32, n_outputs: i32, n_attributes: i32,
    inputs: *const Tensor, outputs: *const Tensor, attributes: *const Number,
}
#[repr(C)] pub struct Kernel {
    name: *const c_char, n_inputs: i32,
    run: Option<unsafe extern "C" fn(*const Call) -> i32>, attributes: *const c_char,
}
unsafe impl Sync for Kernel {}

unsafe extern "C" fn halve(call: *const Call) -> i32 {
    let (x, out) = (&*(*call).inputs, &*(*call).outputs);
    let n = *x.shape as usize;
    let from = std::slice::from_raw_parts(x.data as *const f32, n);
    let to = std::slice::from_raw_parts_mut(out.data as *mut f32, n);
    for (to, from) in to.iter_mut().zip(from) { *to = from / 2.0; }
    0
}

static KERNELS: [Kernel; 2] = [
    Kernel { name: c"Neg".as_ptr(), n_inputs: 1, run: Some(halve), attributes: c"".as_ptr() },
    Kernel { name: std::ptr::null(), n_inputs: 0, run: None, attributes: std::ptr::null() },
];
static DTYPES: [DType; 4] = [
    DType { code: 6, bits: 8, lanes: 1 }, DType { code: 0, bits: 32, lanes: 1 },
    DType { code: 2, bits: 32, lanes: 1 }, DType { code: 0, bits: 0, lanes: 0 },
];
#[no_mangle] pub extern "C" fn tp_kernels() -> *const Kernel { KERNELS.as_ptr() }
#[no_mangle] pub extern "C" fn tp_dtypes() -> *const DType { DTYPES.as_ptr() }
