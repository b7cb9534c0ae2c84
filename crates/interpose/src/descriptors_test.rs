// SPDX-License-Identifier: Apache-2.0
extern crate std;
use super::*;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

#[derive(Default)]
struct Number(AtomicU32);

// SAFETY: one atomic.
unsafe impl Connection for Number {
    fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

fn table() -> Descriptors<Number> {
    Descriptors::new()
}

fn number(table: &Descriptors<Number>, fd: c_int) -> &AtomicU32 {
    &table.connection(table.get(fd)).unwrap().0
}

#[test]
fn the_kernel_says_what_was_inherited() {
    let table = table();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (pair, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    for (fd, kind) in [
        (stream.as_raw_fd(), Kind::Tcp),
        (pair.as_raw_fd(), Kind::Stream),
        (datagrams.as_raw_fd(), Kind::Datagram),
        (file.as_raw_fd(), Kind::Other),
    ] {
        assert_eq!(table.get(fd).kind(), Kind::Unknown);
        assert_eq!(table.look_up(fd).kind(), kind);
        assert_eq!(table.get(fd).kind(), kind);
    }
    assert_eq!(table.look_up(-1).kind(), Kind::Unknown);
}

#[test]
fn what_is_found_out_while_a_descriptor_is_closed_is_not_kept() {
    let table = table();
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let fd = socket.as_raw_fd();
    table.look_up(fd);
    // Between the two halves of a look another thread has closed it and taken the number again.
    table.released(fd);
    let before = table.get(fd);
    table.released(fd);
    assert_eq!(table.classify(fd, before).kind(), Kind::Stream);
    assert_eq!(table.get(fd).kind(), Kind::Unknown);
    // Or is about to.
    table.closing(fd);
    assert_eq!(table.look_up(fd).kind(), Kind::Stream);
    assert_eq!(table.get(fd).kind(), Kind::Unknown);
    table.closed(fd);
    assert_eq!(table.look_up(fd), table.get(fd));
    assert_eq!(table.get(fd).kind(), Kind::Stream);
    // A new socket has the number before `close` has returned.
    table.closing(fd);
    table.opened(fd, libc::AF_INET, libc::SOCK_STREAM);
    table.closed(fd);
    assert_eq!(table.get(fd).kind(), Kind::Tcp);
}

#[test]
fn duplicates_share_their_connection_until_the_last_is_closed() {
    let table = table();
    table.opened(5, libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK);
    number(&table, 5).store(42, Relaxed);
    table.duplicated(5, 9);
    table.released(5);
    assert_eq!(number(&table, 9).load(Relaxed), 42);
    table.opened(5, libc::AF_INET, libc::SOCK_STREAM);
    assert_eq!(number(&table, 5).load(Relaxed), 0, "the number is new, the other lives");
    number(&table, 5).store(7, Relaxed);
    assert_eq!(number(&table, 9).load(Relaxed), 42);
    table.released(9);
    table.opened(9, libc::AF_INET6, libc::SOCK_STREAM);
    assert_eq!(number(&table, 9).load(Relaxed), 0);
    assert_eq!(number(&table, 5).load(Relaxed), 7);
}

#[test]
fn duplicates_of_a_socket_that_nobody_looked_at_yet_share_their_connection() {
    let table = table();
    let (inherited, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let copy = inherited.try_clone().unwrap();
    table.duplicated(inherited.as_raw_fd(), copy.as_raw_fd());
    number(&table, inherited.as_raw_fd()).store(42, Relaxed);
    assert_eq!(number(&table, copy.as_raw_fd()).load(Relaxed), 42);
}

#[test]
fn a_duplicate_onto_itself_changes_nothing() {
    let table = table();
    table.opened(5, libc::AF_INET, libc::SOCK_STREAM);
    number(&table, 5).store(42, Relaxed);
    table.duplicated(5, 5);
    assert_eq!(number(&table, 5).load(Relaxed), 42);
}

#[test]
fn a_duplicate_of_something_unknown_forgets_what_the_number_was() {
    let table = table();
    table.opened(5, libc::AF_INET, libc::SOCK_STREAM);
    table.duplicated(77, 5);
    assert_eq!(table.get(5).kind(), Kind::Unknown);
}

#[test]
fn a_range_is_closed_at_once() {
    let table = table();
    for fd in [3, 1023, 1024, 900_000] {
        table.opened(fd, libc::AF_INET, libc::SOCK_STREAM);
    }
    table.released_range(4, u32::MAX);
    assert_eq!(table.get(3).kind(), Kind::Tcp);
    for fd in [1023, 1024, 900_000] {
        assert_eq!(table.get(fd).kind(), Kind::Unknown);
    }
}

#[test]
fn a_number_beyond_the_table_is_known_without_a_place() {
    let table = table();
    for fd in [1 << 20, c_int::MAX, -1] {
        table.opened(fd, libc::AF_INET, libc::SOCK_STREAM);
        assert_eq!(table.get(fd).kind(), Kind::Unknown);
        table.duplicated(fd, 3);
        table.released(fd);
    }
}

#[test]
fn a_child_of_vfork_changes_nothing() {
    let table = table();
    table.opened(5, libc::AF_INET, libc::SOCK_STREAM);
    let block = ThreadBlock::of_any();
    block.borrowed.store(1, Relaxed);
    table.released(5);
    table.duplicated(6, 5);
    table.opened(8, libc::AF_INET, libc::SOCK_STREAM);
    block.borrowed.store(0, Relaxed);
    assert_eq!(table.get(5).kind(), Kind::Tcp);
    assert_eq!(table.get(8).kind(), Kind::Unknown);
}

#[test]
fn threads_that_open_and_close_leave_no_reference_behind() {
    let table = table();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for round in 0..20_000 {
                    let fd = (round * 7 + thread) % 16;
                    table.opened(fd, libc::AF_INET, libc::SOCK_STREAM);
                    table.duplicated(fd, (fd + 1) % 16);
                    table.released(fd);
                }
            });
        }
    });
    table.released_range(0, 100);
    for place in 0..128 {
        assert_eq!(table.shared(place).unwrap().references.load(Relaxed), 0, "{place}");
    }
}
