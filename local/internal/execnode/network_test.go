package execnode

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

// headless creates a service that publishes the names of the set's pods even before they are ready.
func (b *bench) headless(name string) {
	b.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
			Selector: map[string]string{"set": name}},
	}
	if _, err := b.client.CoreV1().Services(b.namespace).Create(b.Context(), service, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// member makes a pod a named member of a set, like the pods of a JobSet.
func member(set string, index int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Labels["set"] = set
		pod.Spec.Subdomain, pod.Spec.Hostname = set, fmt.Sprintf("%s-workers-0-%d", set, index)
	}
}

func TestPodsFindEachOtherByName(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.headless("pytorch")
		b.pod("server", "", as("serve", variable("PORT", "3389")), member("pytorch", 0))
		b.pod("client", "", as("ask", variable("TARGET", "pytorch-workers-0-0.pytorch:3389")), member("pytorch", 1))
		b.pod("full", "", as("ask", variable("TARGET", "pytorch-workers-0-0.pytorch."+b.namespace+".svc.cluster.local:3389")))
		b.awaitSuccess("client")
		b.awaitSuccess("full")
		if log := b.log("client"); log != "answer: pytorch-workers-0-0\n" {
			t.Errorf("log of the client = %q", log)
		}
	})
}

func TestTwoSetsUseTheSamePortAtOnce(t *testing.T) {
	b := newBench(t, asRoot)
	for _, set := range []string{"red", "blue"} {
		b.headless(set)
		b.pod(set+"-server", "", as("serve", variable("PORT", "3389")), member(set, 0))
		b.pod(set+"-client", "", as("ask", variable("TARGET", set+"-workers-0-0."+set+":3389")), member(set, 1))
	}
	for _, set := range []string{"red", "blue"} {
		b.awaitSuccess(set + "-client")
		if log := b.log(set + "-client"); log != "answer: "+set+"-workers-0-0\n" {
			t.Errorf("log of the %s client = %q", set, log)
		}
	}
}

func TestPortClashOnTheMachinesNetworkIsReported(t *testing.T) {
	b := newBench(t, rootless)
	if len(*b.lines) == 0 || !strings.Contains((*b.lines)[0], "share this machine's network") {
		t.Errorf("log lines of the node at its start = %q, want one about the shared network", *b.lines)
	}
	const port = "18917"
	b.pod("first", "", as("serve", variable("PORT", port)))
	b.awaitLogLine("first", "serving")
	b.pod("second", "", as("serve", variable("PORT", port)))
	b.awaitEnd("second", corev1.PodFailed)
	b.awaitEvent("second", reasonPortClash, "address already in use")
}

func TestPodReachesTheAPIServerAsInACluster(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.pod("asks", "", as("ask", variable("TARGET", "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)")),
			func(pod *corev1.Pod) {
				// The API server closes silent connections after a while. It suffices that it accepts the connection.
				pod.Spec.Containers[0].Command = []string{"bash", "-c",
					"exec 3<>/dev/tcp/$KUBERNETES_SERVICE_HOST/$KUBERNETES_SERVICE_PORT && echo connected"}
			})
		b.awaitSuccess("asks")
		if log := b.log("asks"); log != "connected\n" {
			t.Errorf("log = %q", log)
		}
	})
}

func TestTCPProbeReachesThePod(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.pod("served", "", as("serve", variable("PORT", "18918")), func(pod *corev1.Pod) {
			pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(18918)}},
				PeriodSeconds: 1,
			}
		})
		b.awaitPod("served", "ready", podutil.IsPodReady)
		b.delete("served", ptr.To[int64](0))
	})
}

func TestHostPortIsForwardedFromTheNodesAddress(t *testing.T) {
	b := newBench(t, asRoot)
	b.pod("open", "", as("serve", variable("PORT", "8000")), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8000, HostPort: 18919}}
	})
	b.awaitLogLine("open", "serving")
	conn, err := net.Dial("tcp4", "127.0.0.1:18919")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "open\n" {
		t.Errorf("read %q, %v from the host port", line, err)
	}
}

func TestPodOnTheMachinesNetworkAndAnotherUser(t *testing.T) {
	b := newBench(t, asRoot)
	b.pod("machine", `hostname; test -e /proc/1/comm && ! grep -q muster-container /proc/1/cmdline && echo sees-the-machine`,
		func(pod *corev1.Pod) {
			pod.Spec.HostNetwork, pod.Spec.HostPID = true, true
		})
	if pod := b.awaitSuccess("machine"); pod.Status.PodIP != pod.Status.HostIP {
		t.Errorf("address of the pod = %s, of its host %s, want the same", pod.Status.PodIP, pod.Status.HostIP)
	}
	own, _ := os.Hostname()
	if log := b.log("machine"); log != own+"\nsees-the-machine\n" {
		t.Errorf("log = %q", log)
	}
	b.pod("other", `id -u; id -g; pwd; touch mine && ls`, func(pod *corev1.Pod) {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](4321), RunAsGroup: ptr.To[int64](8765),
			RunAsNonRoot: ptr.To(true)}
	})
	b.awaitSuccess("other")
	if log := b.log("other"); log != "4321\n8765\n/home/container\nmine\n" {
		t.Errorf("log = %q", log)
	}
}
