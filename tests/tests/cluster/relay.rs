//! A connection that can be cut in one direction: a TCP relay between a client and a server.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToClient,
}

/// The fate of bytes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// They wait, and arrive late.
    Held,
    /// They are lost, and finally the connection too.
    Dropped,
}

#[derive(Default)]
struct Wire {
    cut: Mutex<Option<(Way, Cut)>>,
    mended: Condvar,
}

/// A relay to a server on this host.
pub struct Relay {
    pub port: u16,
    wire: Arc<Wire>,
}

impl Relay {
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let wire = Arc::new(Wire::default());
        let shared = Arc::clone(&wire);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // If the server is away the client's connection is closed, as it would be without the relay.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    carry(&client, &server, Way::ToServer, &shared);
                    carry(&server, &client, Way::ToClient, &shared);
                }
            }
        });
        Self { port, wire }
    }

    pub fn cut(&self, way: Way, cut: Cut) {
        *self.wire.lock() = Some((way, cut));
    }

    pub fn mend(&self) {
        *self.wire.lock() = None;
        self.wire.mended.notify_all();
    }
}

impl Wire {
    fn lock(&self) -> MutexGuard<'_, Option<(Way, Cut)>> {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while bytes in this direction are held; returns whether they are dropped.
    fn pass(&self, way: Way) -> bool {
        let held = |cut: &mut Option<(Way, Cut)>| *cut == Some((way, Cut::Held));
        let cut = self.mended.wait_while(self.lock(), held).unwrap_or_else(PoisonError::into_inner);
        *cut == Some((way, Cut::Dropped))
    }
}

fn carry(from: &TcpStream, to: &TcpStream, way: Way, wire: &Arc<Wire>) {
    let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
    let wire = Arc::clone(wire);
    thread::spawn(move || {
        let (mut buffer, mut has_hole) = (vec![0; 64 << 10], false);
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            // After a gap the rest is useless to the reader.
            match wire.pass(way) {
                true => has_hole = true,
                false if has_hole || to.write_all(&buffer[..length]).is_err() => break,
                false => {}
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
