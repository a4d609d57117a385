//! The functions of C's library of mathematics, from a crate. Rust's own and RocksDB's calls come here, so that the program
//! does not need that library: to find, map and bind it would be a thirtieth of the life of a command such as `sbatch`.

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),+) -> $result:ty;)+) => {
        $(
            // SAFETY: the name is taken by C's library for a function of these types, which this one stands for.
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $type),+) -> $result {
                libm::$name($($argument),+)
            }
        )+
    };
}

functions! {
    acos(x: f64) -> f64;
    acosf(x: f32) -> f32;
    atan2(y: f64, x: f64) -> f64;
    atan2f(y: f32, x: f32) -> f32;
    cos(x: f64) -> f64;
    cosf(x: f32) -> f32;
    exp(x: f64) -> f64;
    hypotf(x: f32, y: f32) -> f32;
    log(x: f64) -> f64;
    log10(x: f64) -> f64;
    log2(x: f64) -> f64;
    pow(x: f64, y: f64) -> f64;
    powf(x: f32, y: f32) -> f32;
    tan(x: f64) -> f64;
    tanf(x: f32) -> f32;
}

// SAFETY: as above. What is too large for the result becomes the largest; C leaves it open.
#[unsafe(no_mangle)]
extern "C" fn llround(x: f64) -> i64 {
    libm::round(x) as i64
}

// SAFETY: as above. Callers give two places to write to, as the function of C's library wants.
#[unsafe(no_mangle)]
unsafe extern "C" fn sincos(x: f64, sine: *mut f64, cosine: *mut f64) {
    // SAFETY: see above.
    unsafe { (*sine, *cosine) = libm::sincos(x) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn sincosf(x: f32, sine: *mut f32, cosine: *mut f32) {
    // SAFETY: as above.
    unsafe { (*sine, *cosine) = libm::sincosf(x) }
}
