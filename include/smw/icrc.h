/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The invariant CRC of RoCE v2 (IBTA A17.3.3): CRC-32 over eight bytes of
 * ones, the IP, UDP and BTH headers with their variant fields as ones, the
 * rest of the packet as it is.
 */
#ifndef SMW_ICRC_H
#define SMW_ICRC_H

#include <linux/types.h>

struct iphdr;
struct ipv6hdr;
struct udphdr;

/**
 * smw_icrc_start_ipv4() - CRC state after the masked headers of a packet
 * @ip: IPv4 header without options
 * @udp: UDP header
 * @bth: the SMW_BTH_LEN bytes of the BTH
 *
 * Masked: TOS, TTL, header checksum; UDP checksum; BTH FECN/BECN and reserved.
 *
 * Return: state to go on with over the bytes after the BTH.
 */
u32 smw_icrc_start_ipv4(const struct iphdr *ip, const struct udphdr *udp,
			const void *bth);

/**
 * smw_icrc_start_ipv6() - the same over IPv6
 * @ip: IPv6 header without extension headers
 * @udp: UDP header
 * @bth: the SMW_BTH_LEN bytes of the BTH
 *
 * Masked: traffic class, flow label, hop limit; the rest as for IPv4.
 *
 * Return: state to go on with over the bytes after the BTH.
 */
u32 smw_icrc_start_ipv6(const struct ipv6hdr *ip, const struct udphdr *udp,
			const void *bth);

/**
 * smw_icrc_finish() - the four bytes that go on the wire
 * @state: CRC state after the last byte of payload and padding
 *
 * Return: the ICRC as it is stored after the packet.
 */
__le32 smw_icrc_finish(u32 state);

#endif /* SMW_ICRC_H */
