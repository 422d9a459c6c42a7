package podproblem

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// creating returns a pod on a node, of which no container is created yet, with a volume of the ConfigMap and one that
// only this pod has.
func creating(name, configMap string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: "n", Volumes: []corev1.Volume{
			{Name: "kube-api-access-" + name,
				VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}}}}},
			{Name: "config",
				VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: waiting("ContainerCreating", "")}}},
	}
}

// about returns an event of the kubelet, which it has repeated this long ago.
func about(pod string, ago time.Duration, reason, message string) corev1.Event {
	return corev1.Event{Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{UID: types.UID(pod)},
		LastTimestamp: metav1.NewTime(now.Add(-ago))}
}

// TestWhatAVolumeLacksIsNamed, as the events of one of the pods say.
func TestWhatAVolumeLacksIsNamed(t *testing.T) {
	const (
		missing = `MountVolume.SetUp failed for volume "config" : configmap "gone" not found`
		said    = `FailedMount: volume "config" cannot be mounted: configmap "gone" not found`
		server  = `MountVolume.SetUp failed for volume "data" : mount failed: exit status 32`
		over    = `Unable to attach or mount volumes: unmounted volumes=[config]: timed out waiting for the condition`
	)
	started := creating("p1", "gone")
	started.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pulls := creating("p1", "gone")
	pulls.Status.ContainerStatuses[0].State = waiting("ImagePullBackOff", "no image x")
	for name, tc := range map[string]struct {
		events []corev1.Event // of the pod p0
		pod    corev1.Pod     // the one that is asked about
		want   string
	}{
		"a ConfigMap is missing": {[]corev1.Event{about("p0", time.Minute, FailedMount, missing)},
			creating("p0", "gone"), said},
		"another pod mounts the same": {[]corev1.Event{about("p0", time.Minute, FailedMount, missing)},
			creating("p1", "gone"), said},
		"another pod mounts something else": {[]corev1.Event{about("p0", time.Minute, FailedMount, missing)},
			creating("p1", "other"), ""},
		"another pod has started": {[]corev1.Event{about("p0", time.Minute, FailedMount, missing)}, started, ""},
		"another pod has a problem": {[]corev1.Event{about("p0", time.Minute, FailedMount, missing)}, pulls,
			"ImagePullBackOff: no image x"},
		"the cause may be that of a node": {[]corev1.Event{about("p0", time.Minute, FailedMount, server)},
			creating("p1", "gone"), ""},
		"the cause, of the pod itself": {[]corev1.Event{about("p0", time.Minute, FailedMount, server)},
			creating("p0", "gone"), `FailedMount: volume "data" cannot be mounted: mount failed: exit status 32`},
		"the kubelet also says it gives up": {[]corev1.Event{about("p0", 2*time.Minute, FailedMount, missing),
			about("p0", 0, FailedMount, over)}, creating("p0", "gone"), said},
		"the kubelet only says it gives up": {[]corev1.Event{about("p0", 0, FailedMount, over)}, creating("p0", "gone"),
			"FailedMount: " + over},
		"two causes, one after the other": {[]corev1.Event{about("p0", 2*time.Minute, FailedMount, server),
			about("p0", time.Minute, FailedMount, missing)}, creating("p0", "gone"), said},
		"long ago": {[]corev1.Event{about("p0", time.Hour, FailedMount, missing)},
			creating("p0", "gone"), ""},
		"of an earlier pod of the same name": {[]corev1.Event{about("earlier", 0, FailedMount, missing)},
			creating("p0", "gone"), ""},
		"an event of another kind": {[]corev1.Event{about("p0", 0, "Pulling", missing)}, creating("p0", "gone"), ""},
		"no events":                {nil, creating("p0", "gone"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var mounts Mounts
			p0 := creating("p0", "gone")
			mounts.Note(&p0, tc.events, now)
			reason, message := mounts.Of(&tc.pod, func(pod *corev1.Pod) (string, string) { return Of(pod, now) })
			if got := (Problem{Reason: reason, Message: message}).String(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestOneOfThePodsThatMountTheSameIsAsked for its events, the first by name.
func TestOneOfThePodsThatMountTheSameIsAsked(t *testing.T) {
	unbound := creating("a", "gone")
	unbound.Spec.NodeName = ""
	pods := []corev1.Pod{creating("p2", "gone"), creating("p1", "gone"), creating("p3", "other"), unbound}
	got := AwaitingMounts(pods, 10)
	if len(got) != 2 || got[0].Name != "p1" || got[1].Name != "p3" {
		t.Errorf("got %d pods, want p1 and p3", len(got))
	}
	if got := AwaitingMounts(pods, 1); len(got) != 1 || got[0].Name != "p1" {
		t.Errorf("of one, got %d pods, want p1", len(got))
	}
}
