//! Bytes from the disk or the bus: every type that is decoded from them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_domain::State;
use muster_schemas::{
    codec,
    command::{Answer, CommandEnvelope, Query, QueryAnswer},
    event::{Commit, Record},
    node::{Heartbeat, NodeOrder},
    notify::NotifyItem,
};

fuzz_target!(|bytes: &[u8]| {
    let body = bytes;
    let mut payload = vec![2, codec::SCHEMA_VERSION];
    payload.extend((body.len() as u32).to_le_bytes());
    payload.extend(checksum(body));
    payload.extend(body);
    let _ = codec::decode::<Record>(&payload);
    let _ = codec::decode::<Commit>(&payload);
    let _ = codec::decode::<CommandEnvelope>(&payload);
    let _ = codec::decode::<Answer>(&payload);
    let _ = codec::decode::<Query>(&payload);
    let _ = codec::decode::<QueryAnswer>(&payload);
    let _ = codec::decode::<Vec<NodeOrder>>(&payload);
    let _ = codec::decode::<Heartbeat>(&payload);
    let _ = codec::decode::<NotifyItem>(&payload);
    let _ = State::from_snapshot_bytes(&payload);
    // Unchanged bytes too: headers that lie.
    let _ = codec::decode::<Record>(bytes);
});

/// CRC-32, so that the header is valid and the decoder of the body is reached.
fn checksum(body: &[u8]) -> [u8; 4] {
    let mut crc = !0u32;
    for byte in body {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    (!crc).to_le_bytes()
}
