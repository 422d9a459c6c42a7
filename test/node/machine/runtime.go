package machine

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

// PauseImage is the image of the container that holds the namespaces of a pod.
const PauseImage = "node.muster.test/pause"

// startContainerd starts containerd with the bridge network plugin. It pulls all images from the registry of these
// tests.
func (n *node) startContainerd(ctx context.Context) error {
	registries, err := n.write("registries/_default/hosts.toml",
		fmt.Sprintf("server = \"http://%[1]s\"\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", n.registry))
	if err != nil {
		return err
	}
	network, err := n.write("cni/10-pods.conflist", fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": %q, "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "%s/24"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`, bridge, subnet))
	if err != nil {
		return err
	}
	// restrict_oom_score_adj lets containers run even if this process may not lower its OOM score.
	config, err := n.write("containerd.toml", fmt.Sprintf(`version = 2
root = "%[1]s/containerd"
state = "/run/containerd"
[debug]
  level = "warn"
[grpc]
  address = %[2]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[3]s:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %[4]q
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %[5]q
    conf_dir = %[6]q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`, n.dir, containerdSocket, PauseImage, filepath.Dir(filepath.Dir(registries)), plugins, filepath.Dir(network)))
	if err != nil {
		return err
	}
	if err := n.run("containerd", "containerd", "--config", config); err != nil {
		return err
	}
	return awaitConnection(ctx, "unix", containerdSocket)
}

const (
	containerdSocket = "/run/containerd/containerd.sock"
	subnet           = "10.88.0.0"
)

// awaitConnection waits until a connection to the address succeeds, for programs that do not report that they are
// ready.
func awaitConnection(ctx context.Context, network, address string) error {
	for {
		connection, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			return connection.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for a connection to %s: %w", address, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
