// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <smw/debugfs.h>

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include <smw/carrier.h>
#include <smw/link.h>
#include <smw/mw.h>

static struct dentry *debugfs_root;

/**
 * struct window_line - one window, as it was at one moment
 * @window: a copy of the fields shown
 * @lkey: of the region it is bound to
 * @qpn: of the queue pair it is bound to, 0 for none
 * @accesses: granted so far
 */
struct window_line {
	struct smw_window window;
	u32 lkey;
	u32 qpn;
	u64 accesses;
};

/* Under window->lock, so that region and queue pair cannot go. */
static void read_window(struct smw_window *window, struct window_line *line)
{
	spin_lock_bh(&window->lock);
	/* The counters go on changing. */
	line->window = data_race(*window);
	line->lkey = window->mr ? window->mr->key : 0;
	line->qpn = window->owner ? window->owner->qpn : 0;
	spin_unlock_bh(&window->lock);
	line->accesses = smw_window_accesses(window);
}

static const char *state_name(const struct smw_window *window)
{
	if (window->type == SMW_WINDOW_TYPE_1)
		return window->live ? "bound" : "unbound";
	return window->live ? "valid" : "free";
}

static void show_rights(struct seq_file *file, u32 rights)
{
	seq_putc(file, rights & SMW_REMOTE_READ ? 'r' : '-');
	seq_putc(file, rights & SMW_REMOTE_WRITE ? 'w' : '-');
	seq_putc(file, rights & SMW_REMOTE_ATOMIC ? 'a' : '-');
	seq_putc(file, rights & SMW_FLUSH_GLOBAL ? 'f' : '-');
	seq_putc(file, rights & SMW_ZERO_BASED ? 'z' : '-');
}

static void show_bind(struct seq_file *file, const struct window_line *line)
{
	const struct smw_window *window = &line->window;

	if (!window->live) {
		seq_puts(file, " - - ----- - -");
		return;
	}
	seq_printf(file, " 0x%llx %llu ", window->start, window->length);
	show_rights(file, window->rights);
	seq_printf(file, " 0x%08x", line->lkey);
	if (line->qpn)
		seq_printf(file, " %u", line->qpn);
	else
		seq_puts(file, " -");
}

static void show_window(struct seq_file *file, struct smw_window *window)
{
	struct window_line line;

	read_window(window, &line);
	seq_printf(file, "0x%08x %u %s", line.window.key, line.window.type,
		   state_name(&line.window));
	show_bind(file, &line);
	seq_printf(file, " %llu %llu %s\n", line.accesses,
		   line.window.refusals, line.window.refusals ?
		   smw_reason_info(line.window.last_refusal)->name : "-");
}

static void *windows_start(struct seq_file *file, loff_t *pos)
	__acquires(&((struct smw_link *)file->private)->windows_lock)
{
	struct smw_link *link = file->private;

	spin_lock(&link->windows_lock);
	return seq_list_start_head(&link->windows, *pos);
}

static void *windows_next(struct seq_file *file, void *at, loff_t *pos)
{
	struct smw_link *link = file->private;

	return seq_list_next(at, &link->windows, pos);
}

static void windows_stop(struct seq_file *file, void *at)
	__releases(&((struct smw_link *)file->private)->windows_lock)
{
	struct smw_link *link = file->private;

	spin_unlock(&link->windows_lock);
}

static int windows_show(struct seq_file *file, void *at)
{
	struct smw_link *link = file->private;

	if (at == &link->windows)
		seq_puts(file, "rkey type state start length rights lkey qp accesses refusals last-refusal\n");
	else
		show_window(file, list_entry(at, struct smw_window, link_node));
	return 0;
}

static const struct seq_operations windows_sops = {
	.start = windows_start,
	.next = windows_next,
	.stop = windows_stop,
	.show = windows_show,
};

DEFINE_SEQ_ATTRIBUTE(windows);

static int objects_show(struct seq_file *file, void *unused)
{
	static const char * const names[] = {
		[SMW_OBJECT_PD] = "pd",
		[SMW_OBJECT_QP] = "qp",
		[SMW_OBJECT_CQ] = "cq",
		[SMW_OBJECT_SRQ] = "srq",
		[SMW_OBJECT_MR] = "mr",
		[SMW_OBJECT_MW] = "mw",
		[SMW_OBJECT_AH] = "ah",
		[SMW_OBJECT_MCAST] = "mcast",
	};
	struct smw_link *link = file->private;
	unsigned int i;

	static_assert(ARRAY_SIZE(names) == SMW_OBJECTS);

	for (i = 0; i < SMW_OBJECTS; i++)
		seq_printf(file, "%s %d\nkernel_%s %d\n",
			   names[i], atomic_read(&link->objects[0][i]),
			   names[i], atomic_read(&link->objects[1][i]));
	seq_printf(file, "key %d\n", smw_keytab_count(&link->keys));
	return 0;
}

DEFINE_SHOW_ATTRIBUTE(objects);

static int same_host_get(void *data, u64 *value)
{
	const struct smw_link *link = data;

	*value = READ_ONCE(link->same_host);
	return 0;
}

static int same_host_set(void *data, u64 value)
{
	struct smw_link *link = data;

	if (value > 1)
		return -EINVAL;
	WRITE_ONCE(link->same_host, value);
	smw_carrier_changed();
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(same_host_fops, same_host_get, same_host_set, "%llu\n");

/*
 * The folder comes and goes with the link's registration, and follows its
 * name: as a client of the RDMA core, which tells about all three.
 */
static int client_add(struct ib_device *ibdev)
{
	struct smw_link *link;

	if (ibdev->ops.owner != THIS_MODULE)
		return -EOPNOTSUPP;
	link = smw_link_of(ibdev);
	link->debugfs = debugfs_create_dir(dev_name(&ibdev->dev), debugfs_root);
	debugfs_create_file("windows", 0400, link->debugfs, link, &windows_fops);
	debugfs_create_file("objects", 0400, link->debugfs, link, &objects_fops);
	debugfs_create_file_unsafe("same_host", 0600, link->debugfs, link,
				   &same_host_fops);
	return 0;
}

static void client_remove(struct ib_device *ibdev, void *client_data)
{
	struct smw_link *link = smw_link_of(ibdev);

	debugfs_remove(link->debugfs);
	link->debugfs = NULL;
}

static void client_rename(struct ib_device *ibdev, void *client_data)
{
	struct smw_link *link = smw_link_of(ibdev);

	debugfs_rename(debugfs_root, link->debugfs, debugfs_root,
		       dev_name(&ibdev->dev));
}

static struct ib_client debugfs_client = {
	.name = "smw_debugfs",
	.add = client_add,
	.remove = client_remove,
	.rename = client_rename,
	.no_kverbs_req = true,
};

int smw_debugfs_init(void)
{
	int err;

	debugfs_root = debugfs_create_dir(KBUILD_MODNAME, NULL);
	err = ib_register_client(&debugfs_client);
	if (err)
		debugfs_remove(debugfs_root);
	return err;
}

void smw_debugfs_exit(void)
{
	ib_unregister_client(&debugfs_client);
	debugfs_remove(debugfs_root);
}
