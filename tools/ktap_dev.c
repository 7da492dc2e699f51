// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "ktap_dev.h"

#include "ktap.h"

void ktap_dev_open(struct rdma_dev *dev)
{
	rdma_scale = ktap_opt.scale;
	rdma_dev_open(dev, ktap_opt.device, ktap_opt.gid_index);
}

/* The device is there, and queue pairs on it can be connected. */
static void ktap_dev_probe(void)
{
	struct rdma_dev dev;

	ktap_dev_open(&dev);
	if (dev.ctx->device->node_type == IBV_NODE_RNIC)
		rdma_die("%s speaks iWARP: its queue pairs need a connection manager",
			 ibv_get_device_name(dev.ctx->device));
	if (dev.port_attr.state != IBV_PORT_ACTIVE)
		rdma_die("port %u of %s is not active (%s)", dev.port,
			 ibv_get_device_name(dev.ctx->device),
			 ibv_port_state_str(dev.port_attr.state));
	rdma_dev_close(&dev);
}

/* Providers are loaded with the first list of devices: here, not in every case. */
static void load_providers(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (list)
		ibv_free_device_list(list);
}

int ktap_dev_main(int argc, char **argv, const char *own)
{
	load_providers();
	return ktap_main(argc, argv, own, ktap_dev_probe);
}
