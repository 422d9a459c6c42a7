package machine

import (
	"context"
	"fmt"
)

// startDNS starts CoreDNS for the names of Services and pods, configured as in clusters.
func (n *node) startDNS(ctx context.Context) error {
	program, err := binary("coredns")
	if err != nil {
		return err
	}
	config, err := n.write("Corefile", fmt.Sprintf(`.:53 {
    bind %s
    errors
    kubernetes cluster.local in-addr.arpa {
        kubeconfig %s
        pods insecure
        ttl 5
    }
}
`, gateway, n.cluster.Kubeconfig))
	if err != nil {
		return err
	}
	if err := n.run("coredns", program, "-conf", config); err != nil {
		return err
	}
	return awaitConnection(ctx, "tcp", gateway+":53")
}
