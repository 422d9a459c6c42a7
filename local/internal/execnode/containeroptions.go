package execnode

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"

	"github.com/musterhq/muster/local/internal/execnode/podenv"
	"github.com/musterhq/muster/local/internal/execnode/podvolume"
)

// containerOptions provides the runtime manager with the options of containers. It implements its RuntimeHelper.
type containerOptions struct{ *kubelet }

// GenerateRunContainerOptions returns the environment and the mounts of a container.
func (c *containerOptions) GenerateRunContainerOptions(_ context.Context, pod *corev1.Pod, container *corev1.Container,
	_ string, podIPs []string, _ kubecontainer.ImageVolumes) (*kubecontainer.RunContainerOptions, func(), error) {
	n := c.node
	volumes := n.pods.volumesOf(pod.UID)
	if pod.Spec.HostNetwork || n.network == nil {
		podIPs = []string{n.hostAddress.String()}
	}
	env, err := podenv.Build(pod, container, podenv.Facts{
		HostIP: n.hostAddress.String(), PodIPs: podIPs, Allocatable: n.capacity, Services: c.reachableServices(pod),
		ConfigMap: c.configMaps.GetConfigMap, Secret: c.secrets.GetSecret,
		VolumePath: func(name string) (string, bool) {
			volume, ok := volumes[name]
			return volume.Path, ok
		},
	})
	if err != nil {
		return nil, nil, err
	}
	options := &kubecontainer.RunContainerOptions{Envs: env}
	if !n.isolation.Mounts {
		return options, nil, nil
	}
	if options.Mounts, err = mounts(container, volumes, env); err != nil {
		return nil, nil, err
	}
	if hosts, err := n.hostsMount(pod, container, podIPs); err != nil {
		return nil, nil, err
	} else if hosts != nil {
		options.Mounts = append(options.Mounts, *hosts)
	}
	if container.TerminationMessagePath != "" {
		options.PodContainerDir = filepath.Join(n.podDir(pod.UID), "containers", container.Name)
		if err := os.MkdirAll(options.PodContainerDir, 0o755); err != nil {
			return nil, nil, fmt.Errorf("making room for the container's termination message: %w", err)
		}
	}
	return options, nil, nil
}

// reachableServices returns the cluster's services. If nothing forwards from the API server's cluster IP, it is
// replaced by the API server's own address.
func (c *containerOptions) reachableServices(pod *corev1.Pod) []*corev1.Service {
	n := c.node
	services := n.cluster.allServices()
	if n.network != nil && !pod.Spec.HostNetwork {
		return services
	}
	server, err := n.apiServer()
	if err != nil {
		return services
	}
	address, err := netip.ParseAddrPort(server)
	if err != nil {
		return services
	}
	for i, service := range services {
		if service.Namespace == corev1.NamespaceDefault && service.Name == "kubernetes" && len(service.Spec.Ports) > 0 {
			direct := service.DeepCopy()
			direct.Spec.ClusterIP = address.Addr().String()
			direct.Spec.Ports[0].Port = int32(address.Port())
			services[i] = direct
		}
	}
	return services
}

// mounts are the volumes of a container where it wants them.
func mounts(container *corev1.Container, volumes map[string]podvolume.Volume,
	env []kubecontainer.EnvVar) ([]kubecontainer.Mount, error) {
	var list []kubecontainer.Mount
	for _, wanted := range container.VolumeMounts {
		volume, ok := volumes[wanted.Name]
		if !ok {
			return nil, fmt.Errorf("cannot find volume %q to mount into container %q", wanted.Name, container.Name)
		}
		path, err := subPath(volume.Path, wanted, env)
		if err != nil {
			return nil, fmt.Errorf("volume mount %q of container %q: %w", wanted.Name, container.Name, err)
		}
		list = append(list, kubecontainer.Mount{
			Name: wanted.Name, HostPath: path, ContainerPath: wanted.MountPath, ReadOnly: wanted.ReadOnly || volume.ReadOnly,
		})
	}
	return list, nil
}

// subPath returns the part of a volume that is mounted. If it does not exist, it is created as a directory.
func subPath(volume string, mount corev1.VolumeMount, env []kubecontainer.EnvVar) (string, error) {
	part := mount.SubPath
	if mount.SubPathExpr != "" {
		var err error
		if part, err = kubecontainer.ExpandContainerVolumeMounts(mount, env); err != nil {
			return "", err
		}
	}
	if part == "" {
		return volume, nil
	}
	if !filepath.IsLocal(part) {
		return "", fmt.Errorf("subPath %q must stay inside the volume", part)
	}
	path, err := securejoin.SecureJoin(volume, part)
	if err != nil {
		return "", fmt.Errorf("subPath %q: %w", part, err)
	}
	if _, err := os.Stat(path); os.IsNotExist(err) {
		if err := os.MkdirAll(path, 0o777); err != nil {
			return "", fmt.Errorf("making subPath %q: %w", part, err)
		}
	}
	return path, nil
}

// GetPodDNS returns a pod's resolver settings, or nil where it keeps the machine's.
func (c *containerOptions) GetPodDNS(ctx context.Context, pod *corev1.Pod) (*runtimeapi.DNSConfig, error) {
	if c.node.network == nil {
		return nil, nil
	}
	return c.dns.GetPodDNS(ctx, pod)
}

// GeneratePodHostNameAndDomain returns a pod's host name and, if it has a subdomain, its domain.
func (c *containerOptions) GeneratePodHostNameAndDomain(_ klog.Logger, pod *corev1.Pod) (string, string, error) {
	return hostname(pod, c.node.config.ClusterDomain)
}

const longestHostname = 63

func hostname(pod *corev1.Pod, clusterDomain string) (name, domain string, err error) {
	if override := pod.Spec.HostnameOverride; override != nil {
		return truncate(*override), "", nil
	}
	name = pod.Name
	if pod.Spec.Hostname != "" {
		if problems := validation.IsDNS1123Label(pod.Spec.Hostname); len(problems) > 0 {
			return "", "", fmt.Errorf("pod hostname %q is not a DNS label: %s", pod.Spec.Hostname, strings.Join(problems, "; "))
		}
		name = pod.Spec.Hostname
	}
	if pod.Spec.Subdomain != "" {
		if problems := validation.IsDNS1123Label(pod.Spec.Subdomain); len(problems) > 0 {
			return "", "", fmt.Errorf("pod subdomain %q is not a DNS label: %s", pod.Spec.Subdomain,
				strings.Join(problems, "; "))
		}
		domain = pod.Spec.Subdomain + "." + pod.Namespace + ".svc." + clusterDomain
	}
	return truncate(name), domain, nil
}

func truncate(hostname string) string {
	if len(hostname) <= longestHostname {
		return hostname
	}
	return strings.TrimRight(hostname[:longestHostname], "-.")
}

func (c *containerOptions) GetPodDir(uid types.UID) string { return c.node.podDir(uid) }

// The rest of RuntimeHelper concerns features that this node does not have.

func (c *containerOptions) GetPodCgroupParent(*corev1.Pod) string                        { return "" }
func (c *containerOptions) GetExtraSupplementalGroupsForPod(*corev1.Pod) []int64         { return nil }
func (c *containerOptions) RequestPodReinspect(types.UID)                                {}
func (c *containerOptions) OnPodSandboxReady(context.Context, *corev1.Pod) error         { return nil }
func (c *containerOptions) UnprepareDynamicResources(context.Context, *corev1.Pod) error { return nil }

func (c *containerOptions) GetOrCreateUserNamespaceMappings(klog.Logger, *corev1.Pod,
	string) (*runtimeapi.UserNamespace, error) {
	return nil, nil
}

func (c *containerOptions) PrepareDynamicResources(_ context.Context, pod *corev1.Pod) error {
	if len(pod.Spec.ResourceClaims) > 0 {
		return errNoDevices
	}
	return nil
}

func (c *containerOptions) PodCPUAndMemoryStats(context.Context, *corev1.Pod,
	*kubecontainer.PodStatus) (*statsapi.PodStats, error) {
	return nil, nil
}

func (c *containerOptions) ResizeEphemeralVolume(*corev1.Pod, string, *resource.Quantity) error {
	return nil
}

var _ kubecontainer.RuntimeHelper = &containerOptions{}
