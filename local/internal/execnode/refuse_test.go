package execnode

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestUnsupportedPodsAreRefusedWithTheReason(t *testing.T) {
	tokenMount := corev1.VolumeMount{Name: "kube-api-access-abcde", MountPath: serviceAccountPath}
	dataMount := corev1.VolumeMount{Name: "data", MountPath: "/data"}
	container := func(change func(*corev1.Container)) corev1.PodSpec {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "ok", Command: []string{"true"}},
			{Name: "odd", Image: "nginx", Command: []string{"true"}}}}
		change(&spec.Containers[1])
		return spec
	}
	init := container(func(*corev1.Container) {})
	init.InitContainers = []corev1.Container{{Name: "first", Image: "setup"}}
	shared := container(func(*corev1.Container) {})
	shared.ShareProcessNamespace = ptr.To(true)
	for name, test := range map[string]struct {
		spec   corev1.PodSpec
		mounts bool
		reason string
		words  string
	}{
		"a pod with commands": {container(func(*corev1.Container) {}), true, "", ""},
		"a container without a command": {container(func(c *corev1.Container) { c.Command = nil }), true,
			reasonNoCommand, `container "odd" has no command`},
		"arguments without a command": {container(func(c *corev1.Container) {
			c.Command, c.Args = nil, []string{"x"}
		}), true, reasonNoCommand, "(nginx)"},
		"an init container without a command": {init, true, reasonNoCommand, `"first"`},
		"block devices": {container(func(c *corev1.Container) {
			c.VolumeDevices = []corev1.VolumeDevice{{}}
		}), true, reasonUnsupported, "odd"},
		"a shared process namespace": {shared, true, reasonUnsupported, "shareProcessNamespace"},
		"mounts, where possible": {container(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{dataMount}
		}), true, "", ""},
		"mounts, where impossible": {container(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{dataMount}
		}), false, reasonNoMounts, "/data"},
		"the default token, where mounts are impossible": {container(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{tokenMount}
		}), false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := refuseIfNeeded(&corev1.Pod{Spec: test.spec}, test.mounts)
			if test.reason == "" {
				if got != nil {
					t.Errorf("refusal = %+v, want none", got)
				}
				return
			}
			if got == nil || got.Reason != test.reason || !strings.Contains(got.Message, test.words) {
				t.Errorf("refusal = %+v, want %s with %q", got, test.reason, test.words)
			}
		})
	}
}

func TestRefusedPodsThatAlwaysRestartWait(t *testing.T) {
	for policy, final := range map[corev1.RestartPolicy]bool{
		corev1.RestartPolicyAlways: false, corev1.RestartPolicyOnFailure: true, corev1.RestartPolicyNever: true,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "c"}}}}
		if got := refuseIfNeeded(pod, true); got.final != final {
			t.Errorf("with restart policy %s: refusal final = %v", policy, got.final)
		}
	}
}

func TestAdaptedPodPullsNothingAndKeepsWhatTheUserWrote(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "data"}, {Name: "kube-api-access-x"}},
		Containers: []corev1.Container{{
			Name: "c", ImagePullPolicy: corev1.PullAlways, TerminationMessagePath: "/dev/termination-log",
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"},
				{Name: "kube-api-access-x", MountPath: serviceAccountPath}},
		}},
	}}
	with, without := adapt(pod, true).Spec, adapt(pod, false).Spec
	if c := with.Containers[0]; c.ImagePullPolicy != corev1.PullNever || len(c.VolumeMounts) != 2 ||
		c.TerminationMessagePath == "" || len(with.Volumes) != 2 {
		t.Errorf("adapted spec with mounts = %+v", with)
	}
	if c := without.Containers[0]; len(c.VolumeMounts) != 1 || c.TerminationMessagePath != "" ||
		len(without.Volumes) != 1 {
		t.Errorf("adapted spec without mounts = %+v", without)
	}
	if pod.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Error("the given pod was changed")
	}
}

func TestPortClashIsDetectedInTheLog(t *testing.T) {
	for log, want := range map[string]string{
		"starting\nlisten tcp :80: bind: address already in use\n":      "listen tcp :80: bind: address already in use",
		"OSError: [Errno 98] Address already in use":                    "OSError: [Errno 98] Address already in use",
		"Error: listen EADDRINUSE: address already in use :::3000\nbye": "Error: listen EADDRINUSE: address already in use :::3000",
		"all fine\n": "",
	} {
		if got := clashIn([]byte(log)); got != want {
			t.Errorf("clashIn(%q) = %q, want %q", log, got, want)
		}
	}
}

func TestHostnamesAreThoseOfACluster(t *testing.T) {
	long := strings.Repeat("a", 62) + "-bcd"
	for name, test := range map[string]struct {
		spec         corev1.PodSpec
		host, domain string
	}{
		"the pod's name":           {corev1.PodSpec{}, "pod", ""},
		"a hostname and subdomain": {corev1.PodSpec{Hostname: "h", Subdomain: "s"}, "h", "s.ns.svc.cluster.local"},
		"an override, which has no domain": {corev1.PodSpec{HostnameOverride: ptr.To("o.example"), Subdomain: "s"},
			"o.example", ""},
		"a long override, which is truncated": {corev1.PodSpec{HostnameOverride: &long}, strings.Repeat("a", 62), ""},
	} {
		pod := &corev1.Pod{Spec: test.spec}
		pod.Name, pod.Namespace = "pod", "ns"
		host, domain, err := hostname(pod, "cluster.local")
		if err != nil || host != test.host || domain != test.domain {
			t.Errorf("%s: hostname = %q, domain = %q, error %v", name, host, domain, err)
		}
	}
	if _, _, err := hostname(&corev1.Pod{Spec: corev1.PodSpec{Hostname: "not.a.label"}}, "cluster.local"); err == nil {
		t.Error("a hostname that is not a DNS label was accepted")
	}
}
