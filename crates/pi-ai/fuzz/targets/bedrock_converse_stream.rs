#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pi_ai::testing::fuzz::bedrock_converse_stream(data));
