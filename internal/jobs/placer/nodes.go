package placer

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
)

// nodes looks up nodes of the cluster.
type nodes interface {
	// hostOf returns the hostname label of the node with a name, "" if the node does not exist: it may be
	// recreated soon.
	hostOf(node string) string
	// exists reports whether a node with the hostname exists.
	exists(host string) bool
}

// cachedNodes implements nodes with a reader.
type cachedNodes struct {
	ctx    context.Context
	reader client.Reader
}

func (n cachedNodes) hostOf(name string) string {
	var node corev1.Node
	if err := n.reader.Get(n.ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); err != nil {
		return ""
	}
	return cmp.Or(node.Labels[corev1.LabelHostname], name)
}

func (n cachedNodes) exists(host string) bool {
	var found corev1.NodeList
	err := n.reader.List(n.ctx, &found, client.MatchingFields{jobs.HostnameIndex: host}, client.UnsafeDisableDeepCopy)
	return err == nil && len(found.Items) > 0
}
