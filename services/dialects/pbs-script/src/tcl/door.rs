//! The loopback socket to which an interpreter connects, and nobody else (PBS-X-16).

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    io::{self, Read as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::AsFd as _,
    time::{Duration, Instant},
};
use uuid::Uuid;

/// Connections that may wait to say the secret.
const MOST_WAITING: usize = 64;

/// A socket, and the secret that whoever connects must say first.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    secret: String,
}

/// A connection that has said a part of what it has to say.
struct Guest {
    stream: TcpStream,
    said: Vec<u8>,
}

impl Door {
    /// A socket on a port that is free.
    ///
    /// # Errors
    /// There is no loopback, or no port.
    pub fn new() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let secret = [Uuid::new_v4(), Uuid::new_v4()].map(|part| part.simple().to_string()).concat();
        Ok(Self { listener, secret })
    }

    /// The port.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// What the guest must say.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Waits for the connection that says the secret; all others are closed. `None` if the time is over, or if
    /// `is_over` says so.
    ///
    /// # Errors
    /// The socket fails.
    pub fn admit(self, deadline: Instant, mut is_over: impl FnMut() -> bool) -> io::Result<Option<TcpStream>> {
        const LOOK: Duration = Duration::from_millis(100);
        let mut guests: Vec<Guest> = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || is_over() {
                return Ok(None);
            }
            let mut all: Vec<PollFd> = guests.iter().map(|guest| readable(&guest.stream)).collect();
            all.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
            let timeout = PollTimeout::try_from(left.min(LOOK)).unwrap_or(PollTimeout::ZERO);
            poll(&mut all, timeout)?;
            drop(all);
            while let Ok((stream, _)) = self.listener.accept() {
                // Strangers that say nothing make room for newer ones.
                if guests.len() >= MOST_WAITING {
                    guests.remove(0);
                }
                stream.set_nonblocking(true)?;
                guests.push(Guest { stream, said: Vec::new() });
            }
            let mut rest = Vec::with_capacity(guests.len());
            for mut guest in guests {
                match guest.listen(&self.secret) {
                    Some(true) => return Ok(Some(guest.stream)),
                    Some(false) => {}
                    None => rest.push(guest),
                }
            }
            guests = rest;
        }
    }
}

fn readable(stream: &TcpStream) -> PollFd<'_> {
    PollFd::new(stream.as_fd(), PollFlags::POLLIN)
}

impl Guest {
    /// Whether it said the secret; `None` if it has not said enough.
    fn listen(&mut self, secret: &str) -> Option<bool> {
        // Nothing behind the secret is read: it belongs to what comes next.
        let wanted = secret.len() + 1;
        let mut buffer = vec![0; wanted - self.said.len()];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Some(false),
            Ok(count) => self.said.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) => return Some(false),
        }
        if self.said.len() < wanted {
            return None;
        }
        Some(is_same(&self.said, format!("{secret}\n").as_bytes()))
    }
}

/// Compares in a time that does not depend on where they differ.
fn is_same(said: &[u8], secret: &[u8]) -> bool {
    said.len() == secret.len() && said.iter().zip(secret).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// PBS-X-16: no other local user can take the place of the interpreter.
    #[test]
    fn only_who_knows_the_secret_comes_in() {
        let door = Door::new().expect("a socket");
        let address = (Ipv4Addr::LOCALHOST, door.port().expect("a port"));
        let connect = || TcpStream::connect(address).expect("a connection");
        let mut silent: Vec<TcpStream> = (0..MOST_WAITING + 8).map(|_| connect()).collect();
        let mut wrong = connect();
        wrong.write_all(&[b'0'; 65]).expect("sent");
        let mut right = connect();
        right.write_all(format!("{}\nrest", door.secret()).as_bytes()).expect("sent");
        let local = right.local_addr().expect("an address");
        let mut admitted =
            door.admit(Instant::now() + Duration::from_secs(10), || false).expect("a socket").expect("a guest");
        assert_eq!(admitted.peer_addr().expect("an address"), local);
        let mut rest = [0; 4];
        admitted.read_exact(&mut rest).expect("the rest");
        assert_eq!(&rest, b"rest");
        let mut byte = [0];
        assert!(matches!(wrong.read(&mut byte), Ok(0) | Err(_)));
        assert!(matches!(silent[0].read(&mut byte), Ok(0) | Err(_)));
    }

    #[test]
    fn nobody_is_waited_for_longer_than_the_deadline() {
        let door = Door::new().expect("a socket");
        let _silent = TcpStream::connect((Ipv4Addr::LOCALHOST, door.port().expect("a port"))).expect("a connection");
        assert!(door.admit(Instant::now() + Duration::from_millis(50), || false).expect("a socket").is_none());
        assert!(
            Door::new()
                .expect("a socket")
                .admit(Instant::now() + Duration::from_secs(60), || true)
                .expect("a socket")
                .is_none()
        );
    }
}
