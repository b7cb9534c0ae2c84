// SPDX-License-Identifier: Apache-2.0
//! An Ethernet frame as a TAP device gives it: after a header of virtio.
//!
//! One such frame may be a TCP segment of 64 KiB that a network card would cut into packets
//! (segmentation offload). On the link it counts as these packets.

/// `struct virtio_net_hdr`: flags, type of segmentation, header length, segment size, and where the
/// checksum starts and is.
const VIRTIO: usize = 10;
const ETHERNET: usize = 14;
/// With two VLAN tags.
const ETHERNET_MOST: usize = 22;
pub const LARGEST: usize = VIRTIO + ETHERNET_MOST + 65_536;

/// `VIRTIO_NET_HDR_GSO_UDP_L4`
const UDP: u8 = 5;
/// `VIRTIO_NET_HDR_GSO_ECN`
const ECN: u8 = 0x80;
const UDP_HEADER: usize = 8;
/// Where a TCP header has its own length, in the upper 4 bits, in units of 4 bytes.
const TCP_LENGTH: usize = 12;

/// How many bytes it is as packets on the link.
pub fn bytes_on_link(frame: &[u8]) -> usize {
    let Some(data) = frame.get(VIRTIO..) else { return 0 };
    let kind = frame[1] & !ECN;
    let number = |at: usize| usize::from(u16::from_ne_bytes([frame[at], frame[at + 1]]));
    let (segment, transport) = (number(4), number(6));
    if kind == 0 || segment == 0 {
        return data.len();
    }
    let own = match kind {
        UDP => UDP_HEADER,
        _ => data.get(transport + TCP_LENGTH).map_or(0, |byte| usize::from(byte >> 4) * 4),
    };
    let headers = transport + own;
    let payload = data.len().saturating_sub(headers);
    data.len() + payload.div_ceil(segment).saturating_sub(1) * headers
}

/// Whether it carries an IP packet; others, such as ARP, are between a host and its own link.
pub fn is_ip(frame: &[u8]) -> bool {
    let kind = frame.get(VIRTIO + ETHERNET - 2..VIRTIO + ETHERNET);
    matches!(kind, Some([0x08, 0x00] | [0x86, 0xdd]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, segment: u16, transport: u16, data: Vec<u8>) -> Vec<u8> {
        let mut header = vec![0, kind, 0, 0];
        header.extend(segment.to_ne_bytes());
        header.extend(transport.to_ne_bytes());
        header.extend([0, 0]);
        [header, data].concat()
    }

    #[test]
    fn a_large_segment_counts_with_the_headers_of_its_packets() {
        assert_eq!(bytes_on_link(&frame(0, 0, 0, vec![0; 60])), 60);
        // Ethernet and IPv4 have 34 bytes, TCP 32 with its timestamps.
        let mut tcp = vec![0; 34 + 32 + 3 * 1448 + 1];
        tcp[34 + TCP_LENGTH] = 8 << 4;
        let packets = 4 * (34 + 32) + 3 * 1448 + 1;
        assert_eq!(bytes_on_link(&frame(1, 1448, 34, tcp.clone())), packets);
        assert_eq!(bytes_on_link(&frame(1 | ECN, 1448, 34, tcp)), packets);
        let udp = vec![0; 34 + 8 + 2 * 1000];
        assert_eq!(bytes_on_link(&frame(UDP, 1000, 34, udp)), 2 * (34 + 8 + 1000));
    }

    #[test]
    fn headers_that_make_no_sense_are_no_reason_to_stop() {
        for length in 0..80 {
            let bytes = vec![0xff; length];
            bytes_on_link(&bytes);
            assert!(!is_ip(&bytes));
        }
    }

    #[test]
    fn ip_is_told_from_arp() {
        let of_type = |kind: [u8; 2]| frame(0, 0, 0, [&[0; 12][..], &kind, &[0; 28]].concat());
        assert!(is_ip(&of_type([0x08, 0x00])));
        assert!(is_ip(&of_type([0x86, 0xdd])));
        assert!(!is_ip(&of_type([0x08, 0x06])));
    }
}
