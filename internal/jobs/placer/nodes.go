package placer

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
)

// nodes looks up nodes of the cluster.
type nodes interface {
	// hostOf returns the hostname label of the node with a name, "" if the node does not exist: it may be recreated soon.
	hostOf(node string) string
	// exists reports whether a node with the hostname exists.
	exists(host string) bool
	// open reports whether a node with the hostname exists, is ready, and is neither cordoned nor being deleted.
	open(host string) bool
}

// cachedNodes implements nodes with a reader.
type cachedNodes struct {
	ctx    context.Context
	reader client.Reader
}

func (c cachedNodes) hostOf(name string) string {
	var node corev1.Node
	if err := c.reader.Get(c.ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); err != nil {
		return ""
	}
	return cmp.Or(node.Labels[corev1.LabelHostname], name)
}

func (c cachedNodes) exists(host string) bool { return len(c.of(host)) > 0 }

func (c cachedNodes) open(host string) bool { return slices.ContainsFunc(c.of(host), isOpen) }

// of returns the nodes with the hostname, none if they are unknown.
func (c cachedNodes) of(host string) []corev1.Node {
	var found corev1.NodeList
	if err := c.reader.List(c.ctx, &found, client.MatchingFields{jobs.HostnameIndex: host},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return found.Items
}

func isOpen(node corev1.Node) bool {
	return !node.Spec.Unschedulable && node.DeletionTimestamp.IsZero() && jobs.IsReadyNode(&node)
}
