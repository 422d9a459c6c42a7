package machine

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/musterhq/muster/internal/testcluster"
)

// apiService is the cluster IP of the Service "kubernetes", at which pods connect to the API server.
const apiService = "10.96.0.1"

// startOperator installs Muster on the node with the commands in docs/operate/install.md for clusters without Helm, and
// waits until it runs, in pods of the image, with the rights of the chart.
func (n *node) startOperator(ctx context.Context) error {
	if err := n.forwardAPI(ctx); err != nil {
		return err
	}
	bundle, err := binary("muster.yaml")
	if err != nil {
		return err
	}
	commands := [][]string{
		{"apply", "--server-side", "-f", bundle},
		{"rollout", "status", "--timeout=3m", "-n", "muster-system", "deployment/lattice-operator"},
	}
	for _, command := range commands {
		if _, err := Kubectl(ctx, n.cluster, command...); err != nil {
			pods, _ := Kubectl(context.WithoutCancel(ctx), n.cluster, "describe", "pods", "-n", "muster-system")
			return fmt.Errorf("installing the operator: %w\n%s", err, pods)
		}
	}
	return nil
}

// forwardAPI forwards connections of pods to the API server, which listens only on loopback, as a service proxy would.
func (n *node) forwardAPI(ctx context.Context) error {
	server, err := url.Parse(n.cluster.Config.Host)
	if err != nil {
		return fmt.Errorf("parsing the address of the API server: %w", err)
	}
	commands := [][]string{
		{"sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/" + bridge + "/route_localnet"},
		{"iptables", "-t", "nat", "-A", "PREROUTING", "-i", bridge, "-d", apiService, "-p", "tcp", "--dport", "443", "-j",
			"DNAT", "--to-destination", server.Host},
	}
	for _, command := range commands {
		if output, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, output)
		}
	}
	return nil
}

// Helm runs Helm on the cluster, and returns its output.
func Helm(ctx context.Context, cluster *testcluster.Cluster, arguments ...string) (output string, err error) {
	program, err := binary("helm")
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, program, append(arguments, "--kubeconfig", cluster.Kubeconfig)...)
	command.Env = append(os.Environ(), "HOME="+os.Getenv(dirVariable)) // Helm may write files there
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("helm %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), err
}

// Kubectl runs the kubectl embedded in muster on the cluster, and returns its output.
func Kubectl(ctx context.Context, cluster *testcluster.Cluster, arguments ...string) (output string, err error) {
	program, err := binary("muster")
	if err != nil {
		return "", err
	}
	arguments = append([]string{"kubectl", "--kubeconfig", cluster.Kubeconfig}, arguments...)
	out, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), err
}
