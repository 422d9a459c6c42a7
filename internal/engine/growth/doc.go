// Package growth says by how much elastic workloads that run may be larger or smaller: it lists them by queue, shares
// free capacity out among them, and tries what they would yield to others. It reads queues, workloads and nodes, keeps
// lists of its own in the queues, and changes no size: the engine does.
package growth
