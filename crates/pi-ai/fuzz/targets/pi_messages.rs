#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pi_ai::testing::fuzz::pi_messages(data));
