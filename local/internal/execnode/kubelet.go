package execnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	kubelettypes "k8s.io/kubelet/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	"k8s.io/kubernetes/pkg/kubelet/logs"
	"k8s.io/kubernetes/pkg/kubelet/network/dns"
	kubeletpod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	proberesults "k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/kubelet/secret"
	"k8s.io/kubernetes/pkg/kubelet/status"
	"k8s.io/kubernetes/pkg/kubelet/token"

	"github.com/musterhq/muster/local/internal/execnode/podvolume"
	"github.com/musterhq/muster/local/internal/execnode/process"
)

// The kubelet's defaults, except for the size of logs: kubectl shows only the newest file, and on a development machine
// logs are read with kubectl.
const (
	firstCrashBackOff = 10 * time.Second
	longestBackOff    = 5 * time.Minute
	logFileSize       = "100Mi"
	logFiles          = 2
	logCheckInterval  = 10 * time.Second
)

// stopGrace is the grace period of containers when the node stops.
const stopGrace = 2 * time.Second

// kubelet holds the kubelet's own parts as this node combines them.
type kubelet struct {
	node     *Node
	recorder record.EventRecorderLogger
	sink     record.EventBroadcaster // sends events

	processes *process.Runtime               // the container runtime
	runtime   kuberuntime.KubeGenericRuntime // decides about the containers
	status    status.Manager                 // writes pod status
	podStore  kubeletpod.Manager             // the pods as the status manager sees them
	prober    prober.Manager
	liveness  proberesults.Manager
	readiness proberesults.Manager
	startup   proberesults.Manager
	backOff   *flowcontrol.Backoff

	configMaps configmap.Manager
	secrets    secret.Manager
	tokens     *token.Manager
	volumes    *podvolume.Volumes
	dns        *dns.Configurer
}

func newKubelet(ctx context.Context, n *Node, spawner *process.Spawner) (*kubelet, error) {
	k := &kubelet{node: n, backOff: flowcontrol.NewBackOff(firstCrashBackOff, longestBackOff)}
	n.kubelet, n.pods = k, newPods(n)
	k.startEvents(ctx)
	if err := k.openVolumes(); err != nil {
		return nil, err
	}
	options := process.Options{
		Dir: filepath.Join(n.config.Dir, "runtime"), PodDir: func(uid string) string { return n.podDir(types.UID(uid)) },
		Isolation: n.isolation, Spawner: spawner, HostAddress: n.hostAddress,
		Changed: func(uid string) { n.pods.wake(types.UID(uid)) },
	}
	var nameServers []net.IP
	if n.network != nil {
		options.NewNetwork = n.newPodNetwork
		nameServers = []net.IP{n.network.address.AsSlice()}
	}
	self := &corev1.ObjectReference{Kind: "Node", Name: n.config.Name, UID: types.UID(n.config.Name)}
	k.dns = dns.NewConfigurer(k.recorder, self, []net.IP{n.hostAddress.AsSlice()}, nameServers, n.config.ClusterDomain,
		"/etc/resolv.conf")
	var err error
	if k.processes, err = process.New(options); err != nil {
		k.volumes.Close()
		return nil, err
	}
	k.podStore = kubeletpod.NewBasicPodManager()
	k.status = status.NewManager(n.client, k.podStore, n.pods, noLatency{})
	k.liveness, k.readiness, k.startup = proberesults.NewManager(), proberesults.NewManager(), proberesults.NewManager()
	if err := k.newRuntime(ctx); err != nil {
		k.close()
		return nil, err
	}
	k.prober = prober.NewManager(k.status, k.liveness, k.readiness, k.startup, k.runtime, k.recorder)
	k.status.Start(ctx)
	go k.followProbes(ctx)
	return k, nil
}

// startEvents sends events to the API server, apart from events that carry no information here.
func (k *kubelet) startEvents(ctx context.Context) {
	k.sink = record.NewBroadcaster(record.WithContext(ctx))
	k.sink.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: k.node.client.CoreV1().Events("")})
	k.recorder = fewer{k.sink.NewRecorder(legacyscheme.Scheme,
		corev1.EventSource{Component: "kubelet", Host: k.node.config.Name})}
}

func (k *kubelet) openVolumes() error {
	n := k.node
	const noResync = 0
	k.configMaps = configmap.NewWatchingConfigMapManager(n.client, noResync)
	k.secrets = secret.NewWatchingSecretManager(n.client, noResync)
	k.tokens = token.NewManager(n.client)
	var err error
	k.volumes, err = podvolume.New(podvolume.Options{
		Dir: filepath.Join(n.config.Dir, "volumes"), PodDir: n.podDir, MemoryDir: n.memoryDir(),
		NodeName: n.config.Name, Allocatable: n.capacity, Client: n.client, Recorder: k.recorder,
		ConfigMap: k.configMaps.GetConfigMap, Secret: k.secrets.GetSecret, Token: k.tokens.GetServiceAccountToken,
	})
	return err
}

// newRuntime creates the kubelet's runtime manager over the process runtime. Most of its arguments are about images,
// cgroups and resource management, which do not exist here.
func (k *kubelet) newRuntime(ctx context.Context) error {
	n := k.node
	rotation, err := logs.NewContainerLogManager(k.processes, noLinks{}, logFileSize, logFiles, 1,
		metav1.Duration{Duration: logCheckInterval})
	if err != nil {
		return fmt.Errorf("preparing the rotation of logs: %w", err)
	}
	memory := n.capacity[corev1.ResourceMemory]
	k.runtime, _, err = kuberuntime.NewKubeGenericRuntimeManager(
		ctx, k.recorder, k.liveness, k.readiness, k.startup,
		filepath.Join(n.config.Dir, "kubelet"), n.logsDir(),
		&cadvisorapi.MachineInfo{MemoryCapacity: uint64(memory.Value())},
		n.pods, maxPods, noLinks{}, &containerOptions{k},
		&http.Client{}, flowcontrol.NewBackOff(firstCrashBackOff, longestBackOff),
		false, nil, 0, 0, string(kubeletconfig.NeverVerify), nil, "", "", // images
		nil, false, metav1.Duration{}, nil, // cgroups and sysctls
		k.processes, process.Images{}, cm.NewStubContainerManager(), rotation, nil,
		false, "", func() corev1.ResourceList { return n.capacity }, nil, "", // seccomp, swap, memory
		noLatency{}, noop.NewTracerProvider(), k.tokens, nil, nil,
	)
	if err != nil {
		return fmt.Errorf("preparing the kubelet's runtime manager: %w", err)
	}
	rotation.Start(ctx)
	return nil
}

func (k *kubelet) runtimeVersion() string {
	version, err := k.runtime.Version(context.Background())
	if err != nil {
		return process.Name
	}
	return process.Name + "://" + version.String()
}

// followProbes passes on the results of probes: readiness to the status manager, and failures to the pod's worker.
func (k *kubelet) followProbes(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for {
		select {
		case update := <-k.liveness.Updates():
			if update.Result == proberesults.Failure {
				k.node.pods.wake(update.PodUID)
			}
		case update := <-k.readiness.Updates():
			k.status.SetContainerReadiness(logger, update.PodUID, update.ContainerID, update.Result == proberesults.Success)
			k.node.pods.wake(update.PodUID)
		case update := <-k.startup.Updates():
			k.status.SetContainerStartup(logger, update.PodUID, update.ContainerID, update.Result == proberesults.Success)
			k.node.pods.wake(update.PodUID)
		case <-ctx.Done():
			return
		}
	}
}

// close stops all containers and everything that serves them.
func (k *kubelet) close() {
	grace, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if k.prober != nil {
		k.prober.CleanupPods(nil)
	}
	k.processes.Close(grace)
	k.volumes.Close()
	k.sink.Shutdown()
}

// removeLeftovers removes the containers and logs of pods that are not known any more. It calls knownPods only after it
// has listed what exists, since new pods arrive meanwhile.
func (k *kubelet) removeLeftovers(ctx context.Context, knownPods func() map[types.UID]bool) error {
	containers, err := k.processes.ListContainers(ctx, nil)
	if err != nil {
		return fmt.Errorf("looking for containers of pods that are gone: %w", err)
	}
	logs, err := os.ReadDir(k.node.logsDir())
	if err != nil {
		return fmt.Errorf("looking for logs of pods that are gone: %w", err)
	}
	known := knownPods()
	var failures []error
	for _, container := range containers {
		if !known[types.UID(container.GetLabels()[kubelettypes.KubernetesPodUIDLabel])] {
			failures = append(failures, k.processes.RemoveContainer(ctx, container.GetId()))
		}
	}
	for _, entry := range logs {
		// A pod's directory is called <namespace>_<name>_<UID>.
		parts := strings.Split(entry.Name(), "_")
		if !known[types.UID(parts[len(parts)-1])] {
			failures = append(failures, os.RemoveAll(filepath.Join(k.node.logsDir(), entry.Name())))
		}
	}
	return errors.Join(failures...)
}

// removeOldRuns removes all terminated runs of each container but the last, whose log kubectl logs --previous shows
// once there is a new run.
func (k *kubelet) removeOldRuns(ctx context.Context, state *kubecontainer.PodStatus) error {
	kept := map[string]bool{}
	var failures []error
	for _, run := range state.ContainerStatuses { // the newest comes first
		if run.State != kubecontainer.ContainerStateExited {
			continue
		}
		if kept[run.Name] {
			failures = append(failures, k.runtime.DeleteContainer(ctx, run.ID))
		}
		kept[run.Name] = true
	}
	return errors.Join(failures...)
}

// removePod removes everything that the runtime has of a pod, and its logs.
func (k *kubelet) removePod(ctx context.Context, pod *corev1.Pod, state *kubecontainer.PodStatus) error {
	var failures []error
	for _, run := range state.ContainerStatuses {
		failures = append(failures, k.runtime.DeleteContainer(ctx, run.ID))
	}
	for _, sandbox := range state.SandboxStatuses {
		failures = append(failures, k.processes.RemovePodSandbox(ctx, sandbox.GetId()))
	}
	logs := kuberuntime.BuildPodLogsDirectory(k.node.logsDir(), pod.Namespace, pod.Name, pod.UID)
	return errors.Join(append(failures, os.RemoveAll(logs))...)
}

// noLatency implements, without effect, the interface by which the kubelet's parts measure startup latency.
type noLatency struct{}

func (noLatency) RecordStatusUpdated(klog.Logger, *corev1.Pod) {}
func (noLatency) DeletePodStartupState(types.UID)              {}
func (noLatency) RecordImageStartedPulling(types.UID)          {}
func (noLatency) RecordImageFinishedPulling(types.UID)         {}

// noLinks is the OS interface without the links that a kubelet makes and cleans up in /var/log/containers, a directory
// that does not belong to this node.
type noLinks struct{ kubecontainer.RealOS }

func (noLinks) Symlink(string, string) error { return nil }

func (noLinks) Glob(pattern string) ([]string, error) {
	if strings.HasPrefix(pattern, "/var/log/") {
		return nil, nil
	}
	return filepath.Glob(pattern)
}

// fewer drops events that are redundant without images: that an image is present, and that a container was created,
// which is followed by its start.
type fewer struct{ record.EventRecorderLogger }

func saysNothing(reason string) bool {
	return reason == events.PulledImage || reason == events.PullingImage || reason == events.CreatedContainer
}

func (f fewer) Event(object runtimeObject, kind, reason, message string) {
	if !saysNothing(reason) {
		f.EventRecorderLogger.Event(object, kind, reason, message)
	}
}

func (f fewer) Eventf(object runtimeObject, kind, reason, format string, args ...any) {
	if !saysNothing(reason) {
		f.EventRecorderLogger.Eventf(object, kind, reason, format, args...)
	}
}

func (f fewer) AnnotatedEventf(object runtimeObject, annotations map[string]string,
	kind, reason, format string, args ...any) {
	if !saysNothing(reason) {
		f.EventRecorderLogger.AnnotatedEventf(object, annotations, kind, reason, format, args...)
	}
}

func (f fewer) WithLogger(logger klog.Logger) record.EventRecorderLogger {
	return fewer{f.EventRecorderLogger.WithLogger(logger)}
}

var errNoDevices = errors.New("this node has no devices to claim; leave spec.resourceClaims out")
