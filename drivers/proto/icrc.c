// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The invariant CRC of RoCE v2 (IBTA A17.3.3).
 */
#include <smw/icrc.h>

#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/udp.h>
#include <asm/byteorder.h>

#include <smw/kunit.h>
#include <smw/packet.h>

/* In place of the link header that InfiniBand has and RoCE v2 has not. */
#define ONES_LEN 8

/* Byte of the BTH that carries FECN, BECN and reserved bits. */
#define BTH_VARIANT 4

/* UDP and BTH follow the IP header; returns the bytes written at @to. */
static size_t smw_icrc_mask_transport(u8 *to, const struct udphdr *udp,
				      const void *bth)
{
	struct udphdr masked = *udp;

	masked.check = (__force __sum16)0xffff;
	memcpy(to, &masked, sizeof(masked));
	to += sizeof(masked);
	memcpy(to, bth, SMW_BTH_LEN);
	to[BTH_VARIANT] = 0xff;
	return sizeof(masked) + SMW_BTH_LEN;
}

u32 smw_icrc_start_ipv4(const struct iphdr *ip, const struct udphdr *udp,
			const void *bth)
{
	u8 bytes[ONES_LEN + sizeof(*ip) + sizeof(*udp) + SMW_BTH_LEN];
	struct iphdr masked = *ip;
	size_t len = ONES_LEN;

	memset(bytes, 0xff, ONES_LEN);
	masked.tos = 0xff;
	masked.ttl = 0xff;
	masked.check = (__force __sum16)0xffff;
	memcpy(bytes + len, &masked, sizeof(masked));
	len += sizeof(masked);
	len += smw_icrc_mask_transport(bytes + len, udp, bth);
	return crc32_le(~0, bytes, len);
}
EXPORT_SYMBOL_IF_KUNIT(smw_icrc_start_ipv4);

u32 smw_icrc_start_ipv6(const struct ipv6hdr *ip, const struct udphdr *udp,
			const void *bth)
{
	u8 bytes[ONES_LEN + sizeof(*ip) + sizeof(*udp) + SMW_BTH_LEN];
	struct ipv6hdr masked = *ip;
	size_t len = ONES_LEN;

	memset(bytes, 0xff, ONES_LEN);
	masked.priority = 0xf;
	memset(masked.flow_lbl, 0xff, sizeof(masked.flow_lbl));
	masked.hop_limit = 0xff;
	memcpy(bytes + len, &masked, sizeof(masked));
	len += sizeof(masked);
	len += smw_icrc_mask_transport(bytes + len, udp, bth);
	return crc32_le(~0, bytes, len);
}
EXPORT_SYMBOL_IF_KUNIT(smw_icrc_start_ipv6);

__le32 smw_icrc_finish(u32 state)
{
	return cpu_to_le32(~state);
}
EXPORT_SYMBOL_IF_KUNIT(smw_icrc_finish);
