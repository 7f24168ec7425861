//! Tells the linker that Node.js has the symbols that are missing.

fn main() {
    napi_build::setup();
}
