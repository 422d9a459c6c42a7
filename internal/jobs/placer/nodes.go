package placer

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
)

// nodes is what is known of the cluster's nodes.
type nodes interface {
	// hostOf is the host name of a node by its own name, "" if it is not there: it may be back in a moment.
	hostOf(node string) string
	// has reports whether a node of the host name is there.
	exists(host string) bool
}

// nodesNow are those that the reader knows.
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
