# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""capture.py PCAP DISSECTED CASES: check the RoCE v2 packets of a capture.

Prints the rest of a KTAP file that has CASES results: one case for each RC, UC
and UD opcode and IP version. The ICRC is computed from the packet as RoCE v2 has it
(CRC-32 of eight bytes of ones, the IP header with its variable fields set to
ones, UDP, BTH and the rest) with Python's zlib.crc32. DISSECTED is what tshark
says of each frame: number, opcode, ICRC, malformed.
"""

import struct
import sys
import zlib

OPCODES = {
    0x00: 'SEND_FIRST', 0x01: 'SEND_MIDDLE', 0x02: 'SEND_LAST',
    0x03: 'SEND_LAST_WITH_IMM', 0x04: 'SEND_ONLY', 0x05: 'SEND_ONLY_WITH_IMM',
    0x06: 'RDMA_WRITE_FIRST', 0x07: 'RDMA_WRITE_MIDDLE', 0x08: 'RDMA_WRITE_LAST',
    0x09: 'RDMA_WRITE_LAST_WITH_IMM', 0x0a: 'RDMA_WRITE_ONLY',
    0x0b: 'RDMA_WRITE_ONLY_WITH_IMM', 0x0c: 'RDMA_READ_REQUEST',
    0x0d: 'RDMA_READ_RESPONSE_FIRST', 0x0e: 'RDMA_READ_RESPONSE_MIDDLE',
    0x0f: 'RDMA_READ_RESPONSE_LAST', 0x10: 'RDMA_READ_RESPONSE_ONLY',
    0x11: 'ACKNOWLEDGE', 0x12: 'ATOMIC_ACKNOWLEDGE', 0x13: 'CMP_SWAP',
    0x14: 'FETCH_ADD', 0x16: 'SEND_LAST_WITH_INV', 0x17: 'SEND_ONLY_WITH_INV',
    0x1c: 'FLUSH', 0x1d: 'ATOMIC_WRITE',
    0x64: 'UD_SEND_ONLY', 0x65: 'UD_SEND_ONLY_WITH_IMM',
}
UC = 0x20
OPCODES |= {UC | opcode: 'UC_' + OPCODES[opcode] for opcode in range(0x0c)}


def flush_complaint(headers):
    """What is wrong with the FETH and RETH of a FLUSH to visibility, or None."""
    if len(headers) != 4 + 16:
        return f'{len(headers)} bytes behind the BTH'
    feth, _, _, length = struct.unpack('>IQII', headers)
    if feth not in (0x01, 0x11):
        return f'FETH {feth:#x}'
    return f'a range of {length} bytes' if feth == 0x01 and length != 16384 else None


def atomic_write_complaint(headers):
    """What is wrong with the RETH and the word of an ATOMIC WRITE, or None."""
    if len(headers) != 16 + 8:
        return f'{len(headers)} bytes behind the BTH'
    va, _, length = struct.unpack('>QII', headers[:16])
    if va % 8 or length != 8:
        return f'{length} bytes at {va:#x}'
    low, high = struct.unpack('<II', headers[16:])
    return None if low ^ high == 0xffffffff else f'the word {headers[16:].hex()}'


# Of these tshark 4.0 knows the opcode alone.
OWN = {0x1c: flush_complaint, 0x1d: atomic_write_complaint}


def frames(path):
    """Yield the frames of a classic pcap file of Ethernet."""
    with open(path, 'rb') as file:
        data = file.read()
    order = {b'\xd4\xc3\xb2\xa1': '<', b'\xa1\xb2\xc3\xd4': '>',
             b'\x4d\x3c\xb2\xa1': '<', b'\xa1\xb2\x3c\x4d': '>'}[data[:4]]
    offset = 24
    while offset + 16 <= len(data):
        length = struct.unpack(order + 'I', data[offset + 8:offset + 12])[0]
        yield data[offset + 16:offset + 16 + length]
        offset += 16 + length


def icrc(packet, version, transport):
    """The ICRC of an IP packet whose UDP header is at TRANSPORT, less its own."""
    masked = bytearray(packet[:-4])
    if version == 4:
        masked[1] = 0xff                                # type of service
        masked[8] = 0xff                                # time to live
        masked[10:12] = b'\xff\xff'                     # header checksum
    else:
        masked[0] |= 0x0f                               # traffic class, flow label
        masked[1:4] = b'\xff\xff\xff'
        masked[7] = 0xff                                # hop limit
    masked[transport + 6:transport + 8] = b'\xff\xff'   # UDP checksum
    masked[transport + 12] = 0xff                       # BTH: FECN, BECN, reserved
    return zlib.crc32(b'\xff' * 8 + bytes(masked))


def judge(frame, said):
    """Return (IP version, opcode, complaint or None) of a frame, or None."""
    version = {0x0800: 4, 0x86dd: 6}.get(struct.unpack('>H', frame[12:14])[0])
    if version is None:
        return None
    packet = frame[14:]
    if version == 4:
        transport, length = (packet[0] & 15) * 4, struct.unpack('>H', packet[2:4])[0]
    else:
        transport, length = 40, 40 + struct.unpack('>H', packet[4:6])[0]
    if length > len(packet):
        return version, None, 'shorter than its IP header says'
    packet = packet[:length]
    opcode = packet[transport + 8]
    if struct.unpack('>H', packet[transport + 4:transport + 6])[0] != length - transport:
        return version, opcode, "UDP's length is not IP's"
    carried = struct.unpack('<I', packet[-4:])[0]
    wanted = icrc(packet, version, transport)
    if carried != wanted:
        return version, opcode, f'ICRC {carried:#010x}, wanted {wanted:#010x}'
    if said is None:
        return version, opcode, 'tshark does not know it'
    if said[1] != str(opcode):
        return version, opcode, f'tshark sees opcode {said[1] or "none"}'
    if opcode in OWN:
        return version, opcode, OWN[opcode](packet[transport + 8 + 12:-4])
    if len(said) > 3 and said[3]:
        return version, opcode, f'tshark: malformed: {said[3]}'
    if int(said[2], 16) != struct.unpack('>I', packet[-4:])[0]:
        return version, opcode, f'tshark sees ICRC {said[2]}'
    return version, opcode, None


def main():
    path, dissected, case = sys.argv[1], sys.argv[2], int(sys.argv[3])
    said = {}
    with open(dissected, encoding='utf-8') as file:
        for line in file:
            fields = line.rstrip('\n').split('\t')
            said[int(fields[0])] = fields
    seen, wrong = {}, {}
    for number, frame in enumerate(frames(path), 1):
        result = judge(frame, said.get(number))
        if result is None:
            continue
        version, opcode, complaint = result
        seen[version, opcode] = seen.get((version, opcode), 0) + 1
        if complaint:
            wrong.setdefault((version, opcode), []).append(f'frame {number}: {complaint}')
    for version in 4, 6:
        for opcode, name in OPCODES.items():
            case += 1
            key = version, opcode
            count, complaints = seen.pop(key, 0), wrong.pop(key, [])
            for complaint in complaints[:5]:
                print('#', complaint)
            status = 'ok' if count and not complaints else 'not ok'
            print(f'{status} {case} {name} over IPv{version}: {count} packets, '
                  f'{len(complaints)} wrong')
    case += 1
    for (version, opcode), count in seen.items():
        print(f'# opcode {opcode} over IPv{version}: {count} packets')
    print(f'{"not ok" if seen else "ok"} {case} no packet of another kind')
    print(f'1..{case}')


main()
