package execnode

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

const etcHosts = "/etc/hosts"

// hostsMount returns the /etc/hosts of a container, or nil if it mounts its own.
func (n *Node) hostsMount(pod *corev1.Pod, container *corev1.Container, podIPs []string) (*kubecontainer.Mount, error) {
	for _, mount := range container.VolumeMounts {
		if mount.MountPath == etcHosts {
			return nil, nil
		}
	}
	content, err := n.hostsContent(pod, podIPs)
	if err != nil {
		return nil, err
	}
	path := n.hostsPath(pod)
	if err := writeInPlace(path, content); err != nil {
		return nil, fmt.Errorf("writing the pod's hosts file: %w", err)
	}
	return &kubecontainer.Mount{Name: "hosts", ContainerPath: etcHosts, HostPath: path}, nil
}

func (n *Node) hostsPath(pod *corev1.Pod) string {
	return filepath.Join(n.podDir(pod.UID), "etc-hosts")
}

// hostsContent returns a pod's hosts file. In a network of its own the pod is in the file itself, and other names
// resolve by DNS. In the machine's network the file has the machine's entries and, as the pod can use no other DNS
// server, all names of the cluster.
func (n *Node) hostsContent(pod *corev1.Pod, podIPs []string) ([]byte, error) {
	var text bytes.Buffer
	own := n.network != nil && !pod.Spec.HostNetwork
	if own {
		text.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	} else {
		machine, err := os.ReadFile(etcHosts)
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("reading the machine's hosts file: %w", err)
		}
		text.Write(machine)
		text.WriteString("\n")
	}
	name, domain, err := hostname(pod, n.config.ClusterDomain)
	if err != nil {
		return nil, err
	}
	if !pod.Spec.HostNetwork {
		for _, address := range podIPs {
			if domain != "" {
				fmt.Fprintf(&text, "%s\t%s.%s\t%s\n", address, name, domain, name)
			} else {
				fmt.Fprintf(&text, "%s\t%s\n", address, name)
			}
		}
	}
	for _, alias := range pod.Spec.HostAliases {
		for _, name := range alias.Hostnames {
			fmt.Fprintf(&text, "%s\t%s\n", alias.IP, name)
		}
	}
	if n.network == nil {
		text.WriteString(n.zone().Hosts(pod.Namespace, n.cluster.allServices()))
	}
	return text.Bytes(), nil
}

// writeInPlace overwrites the file rather than replacing it, because it is bind-mounted into containers.
func writeInPlace(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Truncate(int64(len(content)))
}

// followNames keeps the names in the hosts files of running pods up to date until the context ends, if they are
// resolved so.
func (n *Node) followNames(ctx context.Context) {
	if n.network != nil || !n.isolation.Mounts {
		return
	}
	for {
		changed := n.cluster.Changed()
		n.rewriteHosts()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// rewriteHosts updates the hosts file of each pod that has one.
func (n *Node) rewriteHosts() {
	for _, object := range n.cluster.pods.GetStore().List() {
		pod := object.(*corev1.Pod)
		path := n.hostsPath(pod)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if content, err := n.hostsContent(pod, []string{n.hostAddress.String()}); err == nil {
			writeInPlace(path, content) // on an error, such as a full disk, the old names stay
		}
	}
}
