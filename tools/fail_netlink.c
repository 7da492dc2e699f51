// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "fail_netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TYPE(cmd)	RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd)

struct request {
	struct nlmsghdr head;
	char attrs[256];
};

/* A device of a dump. */
struct device {
	const char *name;
	uint32_t index;
	const struct nlattr *summary;
};

static void request_init(struct request *r, unsigned int cmd, unsigned int flags)
{
	memset(r, 0, sizeof(*r));
	r->head.nlmsg_len = NLMSG_HDRLEN;
	r->head.nlmsg_type = (uint16_t)TYPE(cmd);
	r->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
}

static void put(struct request *r, uint16_t type, const void *value, size_t len)
{
	struct nlattr *attr = (void *)((char *)r + r->head.nlmsg_len);

	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy((char *)attr + NLA_HDRLEN, value, len);
	r->head.nlmsg_len += (uint32_t)NLMSG_ALIGN(attr->nla_len);
}

static void put_string(struct request *r, uint16_t type, const char *value)
{
	put(r, type, value, strlen(value) + 1);
}

static const struct nlattr *first_in(const struct nlattr *nest)
{
	return (const void *)((const char *)nest + NLA_HDRLEN);
}

static const void *value_of(const struct nlattr *attr)
{
	return (const char *)attr + NLA_HDRLEN;
}

/* The next attribute of those that end at @end; NULL after the last. */
static const struct nlattr *attr_at(const void *at, const void *end)
{
	const struct nlattr *attr = at;

	if ((const char *)at + NLA_HDRLEN > (const char *)end ||
	    attr->nla_len < NLA_HDRLEN)
		return NULL;
	return attr;
}

static const struct nlattr *next(const struct nlattr *attr, const void *end)
{
	return attr_at((const char *)attr + NLA_ALIGN(attr->nla_len), end);
}

static const void *end_of(const struct nlattr *nest)
{
	return (const char *)nest + nest->nla_len;
}

static int open_socket(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&kernel, sizeof(kernel))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void parse_device(const struct nlmsghdr *head, struct device *dev)
{
	const void *end = (const char *)head + head->nlmsg_len;
	const struct nlattr *attr;

	memset(dev, 0, sizeof(*dev));
	for (attr = attr_at((const char *)head + NLMSG_HDRLEN, end); attr;
	     attr = next(attr, end)) {
		switch (attr->nla_type & NLA_TYPE_MASK) {
		case RDMA_NLDEV_ATTR_DEV_NAME:
			dev->name = value_of(attr);
			break;
		case RDMA_NLDEV_ATTR_DEV_INDEX:
			memcpy(&dev->index, value_of(attr), sizeof(dev->index));
			break;
		case RDMA_NLDEV_ATTR_RES_SUMMARY:
			dev->summary = attr;
			break;
		}
	}
}

/* Find a device in the dump of all; @buf keeps what @dev points to. */
static bool find_device(const char *name, struct device *dev, char *buf, size_t len)
{
	struct request request;
	bool found = false, done = false;
	int fd = open_socket();

	if (fd < 0)
		return false;
	request_init(&request, RDMA_NLDEV_CMD_RES_GET, NLM_F_DUMP);
	if (send(fd, &request, request.head.nlmsg_len, 0) < 0)
		done = true;
	while (!done && !found) {
		ssize_t got = recv(fd, buf, len, 0);
		struct nlmsghdr *head = (void *)buf;

		if (got <= 0)
			break;
		for (; NLMSG_OK(head, got) && !found; head = NLMSG_NEXT(head, got)) {
			done = head->nlmsg_type == NLMSG_DONE ||
			       head->nlmsg_type == NLMSG_ERROR;
			if (done)
				break;
			parse_device(head, dev);
			found = dev->name && !strcmp(dev->name, name);
		}
	}
	close(fd);
	return found;
}

static void print_entry(const struct nlattr *entry, char *text, size_t len)
{
	const void *end = end_of(entry);
	const char *name = "?";
	uint64_t count = 0;
	const struct nlattr *attr;

	for (attr = attr_at(first_in(entry), end); attr; attr = next(attr, end)) {
		switch (attr->nla_type & NLA_TYPE_MASK) {
		case RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME:
			name = value_of(attr);
			break;
		case RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR:
			memcpy(&count, value_of(attr), sizeof(count));
			break;
		}
	}
	snprintf(text, len, "resource %s %llu\n", name, (unsigned long long)count);
}

bool netlink_resources(const char *dev, char *text, size_t len)
{
	static char buf[16384];
	const struct nlattr *entry;
	struct device device;
	const void *end;
	size_t used = 0;

	if (!find_device(dev, &device, buf, sizeof(buf)) || !device.summary)
		return false;
	end = end_of(device.summary);
	for (entry = attr_at(first_in(device.summary), end); entry;
	     entry = next(entry, end)) {
		print_entry(entry, text + used, len - used);
		used += strlen(text + used);
	}
	return true;
}

bool netlink_index(const char *dev, uint32_t *index)
{
	static char buf[16384];
	struct device device;

	if (!find_device(dev, &device, buf, sizeof(buf)))
		return false;
	*index = device.index;
	return true;
}

/*
 * Send a request and take its acknowledgment. That can be lost to a failed
 * allocation as well; then the send or the receive says so.
 */
static int transact(int fd, const struct request *request)
{
	char buf[512];
	struct nlmsghdr *head = (void *)buf;
	struct nlmsgerr *error = NLMSG_DATA(head);
	ssize_t got;

	if (send(fd, request, request->head.nlmsg_len, 0) < 0)
		return errno;
	got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (got < 0)
		return errno;
	return NLMSG_OK(head, got) && head->nlmsg_type == NLMSG_ERROR ?
	       -error->error : EPROTO;
}

static int request_ack(const struct request *request)
{
	int fd = open_socket();
	int err;

	if (fd < 0)
		return errno;
	err = transact(fd, request);
	close(fd);
	return err;
}

int netlink_add_link(const char *dev, const char *type, const char *netdev)
{
	struct request request;

	request_init(&request, RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
	put_string(&request, RDMA_NLDEV_ATTR_DEV_NAME, dev);
	put_string(&request, RDMA_NLDEV_ATTR_LINK_TYPE, type);
	put_string(&request, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	return request_ack(&request);
}

int netlink_delete_link(uint32_t index)
{
	struct request request;

	request_init(&request, RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);
	put(&request, RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
	return request_ack(&request);
}
