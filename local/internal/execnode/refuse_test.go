package execnode

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestWhatAProcessCannotHaveIsRefusedByName(t *testing.T) {
	tokenMount := corev1.VolumeMount{Name: "kube-api-access-abcde", MountPath: serviceAccountPath}
	dataMount := corev1.VolumeMount{Name: "data", MountPath: "/data"}
	container := func(change func(*corev1.Container)) corev1.PodSpec {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "ok", Command: []string{"true"}}, {Name: "odd", Image: "nginx", Command: []string{"true"}}}}
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
		"a pod with commands is taken":            {container(func(*corev1.Container) {}), true, "", ""},
		"a container without command is not":      {container(func(c *corev1.Container) { c.Command = nil }), true, reasonNoCommand, `container "odd" has no command`},
		"arguments alone are no command":          {container(func(c *corev1.Container) { c.Command, c.Args = nil, []string{"x"} }), true, reasonNoCommand, "(nginx)"},
		"init containers count":                   {init, true, reasonNoCommand, `"first"`},
		"block devices are not":                   {container(func(c *corev1.Container) { c.VolumeDevices = []corev1.VolumeDevice{{}} }), true, reasonUnsupported, "odd"},
		"a shared process namespace is not":       {shared, true, reasonUnsupported, "shareProcessNamespace"},
		"mounts are taken where they can be made": {container(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{dataMount} }), true, "", ""},
		"mounts are not where they cannot":        {container(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{dataMount} }), false, reasonNoMounts, "/data"},
		"a token nobody asked for is no reason":   {container(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{tokenMount} }), false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := refuseIfNeeded(&corev1.Pod{Spec: test.spec}, test.mounts)
			if test.reason == "" {
				if got != nil {
					t.Errorf("refused: %+v", got)
				}
				return
			}
			if got == nil || got.Reason != test.reason || !strings.Contains(got.Message, test.words) {
				t.Errorf("refusal is %+v, want %s with %q", got, test.reason, test.words)
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
			t.Errorf("with restart policy %s the refusal is final: %v", policy, got.final)
		}
	}
}

func TestAdaptedPodPullsNothingAndKeepsWhatTheUserWrote(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "data"}, {Name: "kube-api-access-x"}},
		Containers: []corev1.Container{{
			Name: "c", ImagePullPolicy: corev1.PullAlways, TerminationMessagePath: "/dev/termination-log",
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "kube-api-access-x", MountPath: serviceAccountPath}},
		}},
	}}
	with, without := adapt(pod, true).Spec, adapt(pod, false).Spec
	if c := with.Containers[0]; c.ImagePullPolicy != corev1.PullNever || len(c.VolumeMounts) != 2 || c.TerminationMessagePath == "" || len(with.Volumes) != 2 {
		t.Errorf("with mounts: %+v", with)
	}
	if c := without.Containers[0]; len(c.VolumeMounts) != 1 || c.TerminationMessagePath != "" || len(without.Volumes) != 1 {
		t.Errorf("without mounts: %+v", without)
	}
	if pod.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Error("the pod itself was changed")
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
			t.Errorf("from %q: %q, want %q", log, got, want)
		}
	}
}

func TestHostnamesAreThoseOfACluster(t *testing.T) {
	long := strings.Repeat("a", 62) + "-bcd"
	for name, test := range map[string]struct {
		spec         corev1.PodSpec
		host, domain string
	}{
		"a pod's name":              {corev1.PodSpec{}, "pod", ""},
		"the hostname it asks for":  {corev1.PodSpec{Hostname: "h", Subdomain: "s"}, "h", "s.ns.svc.cluster.local"},
		"an override has no domain": {corev1.PodSpec{HostnameOverride: ptr.To("o.example"), Subdomain: "s"}, "o.example", ""},
		"a long one is cut":         {corev1.PodSpec{HostnameOverride: &long}, strings.Repeat("a", 62), ""},
	} {
		pod := &corev1.Pod{Spec: test.spec}
		pod.Name, pod.Namespace = "pod", "ns"
		host, domain, err := hostname(pod, "cluster.local")
		if err != nil || host != test.host || domain != test.domain {
			t.Errorf("%s: %q %q, %v", name, host, domain, err)
		}
	}
	if _, _, err := hostname(&corev1.Pod{Spec: corev1.PodSpec{Hostname: "not.a.label"}}, "cluster.local"); err == nil {
		t.Error("a hostname that is no DNS label was taken")
	}
}
