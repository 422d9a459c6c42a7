package translate

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
)

// refusedFor returns a pod that kube-scheduler refuses at its place for that reason.
func refusedFor(why string) *corev1.Pod {
	return admissiontest.Saying(admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
		"0/4 nodes are available: "+why+", 3 node(s) didn't match Pod's node affinity/selector. preemption: none.")
}

func failedPod(pod *corev1.Pod) *corev1.Pod { pod.Status.Phase = corev1.PodFailed; return pod }

func gated(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}}
	return pod
}

func TestTranslatePods(t *testing.T) {
	key := engine.Key{Namespace: "ns", Name: "p"}
	ours := place.Pod{Key: key, Node: "n", Requests: map[string]int64{"cpu": 1000},
		Workload: engine.Key{Namespace: "ns", Name: "w"}, PodSet: "main"}
	foreign := place.Pod{Key: key, Node: "n", Requests: map[string]int64{"cpu": 1000}}
	resident, exclusive := foreign, ours
	resident.Resident = true
	exclusive.ExclusiveKey = "rack"
	daemon := admissiontest.BoundPod("p", "", "n")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: ptr.To(true)}}
	service, executor := admissiontest.BoundPod("p", "", "n"), admissiontest.BoundPod("p", "", "n")
	service.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet",
		Controller: ptr.To(true)}}
	executor.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Controller: ptr.To(true)}}
	ofSecondJob, second := ours, admissiontest.BoundPod("p", "w", "n")
	ofSecondJob.Part = place.Part{Index: 1, Of: 3}
	second.Labels["jobset.sigs.k8s.io/job-index"], second.Labels["jobset.sigs.k8s.io/replicatedjob-replicas"] = "1", "3"
	reported, later := ours, admissiontest.BoundPod("p", "w", "n")
	reported.Part = place.Part{From: 4, To: 8}
	later.Annotations["muster.dev/ranks"] = "4-7"
	later.Labels["jobset.sigs.k8s.io/job-index"], later.Labels["jobset.sigs.k8s.io/replicatedjob-replicas"] = "2", "3"
	third, indexed := ours, admissiontest.BoundPod("p", "w", "n")
	third.Rank, third.HasRank = 3, true
	indexed.Labels["batch.kubernetes.io/job-completion-index"] = "3"
	beyond := admissiontest.BoundPod("p", "w", "n")
	beyond.Labels["jobset.sigs.k8s.io/job-index"], beyond.Labels["jobset.sigs.k8s.io/replicatedjob-replicas"] = "3", "3"
	alone := admissiontest.BoundPod("p", "w", "n")
	alone.Annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"], alone.Labels["jobset.sigs.k8s.io/jobset-name"] =
		"rack", "js"
	annotated := admissiontest.BoundPod("p", "w", "n")
	annotated.Annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"] = "rack"
	leaving := admissiontest.BoundPod("p", "", "n")
	leaving.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
	byHand := admissiontest.BoundPod("p", "w", "n")
	byHand.Spec.NodeSelector = map[string]string{jobset.NamespacedJobKey: "default_w-0"}
	byHand.DeletionTimestamp = leaving.DeletionTimestamp
	going := ours
	going.Terminating = true
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want []engine.Event
	}{
		"a pod of a workload": {admissiontest.BoundPod("p", "w", "n"),
			[]engine.Event{engine.PodBound{Pod: ours}}},
		"a pod of no workload": {admissiontest.BoundPod("p", "", "n"),
			[]engine.Event{engine.PodBound{Pod: foreign}}},
		"a daemon pod":                              {daemon, []engine.Event{engine.PodBound{Pod: resident}}},
		"a pod of a service, which stays":           {service, []engine.Event{engine.PodBound{Pod: resident}}},
		"a pod of a driver, with which it ends":     {executor, []engine.Event{engine.PodBound{Pod: foreign}}},
		"a pod with an exclusive domain":            {alone, []engine.Event{engine.PodBound{Pod: exclusive}}},
		"a pod of no JobSet that asks for a domain": {annotated, []engine.Event{engine.PodBound{Pod: ours}}},
		"a pod of one of three Jobs":                {second, []engine.Event{engine.PodBound{Pod: ofSecondJob}}},
		"a pod that states its ranks":               {later, []engine.Event{engine.PodBound{Pod: reported}}},
		"a pod of an Indexed Job":                   {indexed, []engine.Event{engine.PodBound{Pod: third}}},
		"a pod with an impossible Job index":        {beyond, []engine.Event{engine.PodBound{Pod: ours}}},
		"an unbound pod": {admissiontest.BoundPod("p", "w", ""),
			[]engine.Event{engine.PodGone{Key: key}}},
		"a gated pod": {gated(admissiontest.BoundPod("p", "w", "")),
			[]engine.Event{engine.PodGone{Key: key}}},
		"an ended pod": {admissiontest.Ended(admissiontest.BoundPod("p", "w", "n")),
			[]engine.Event{engine.PodEnded{Key: key, Of: place.PodSetKey{Workload: ours.Workload, PodSet: ours.PodSet}}}},
		"an ended pod of no workload": {admissiontest.Ended(admissiontest.BoundPod("p", "", "n")),
			[]engine.Event{engine.PodGone{Key: key}}},
		"a failed pod, which may be replaced": {failedPod(admissiontest.BoundPod("p", "w", "n")),
			[]engine.Event{engine.PodGone{Key: key}}},
		"a terminating pod":                            {leaving, []engine.Event{engine.PodBound{Pod: foreign}}},
		"a terminating pod on a node chosen by labels": {byHand, []engine.Event{engine.PodBound{Pod: going}}},
	} {
		if diff := cmp.Diff(tc.want, newPodWatch().set(tc.pod, admissiontest.Now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHostPorts(t *testing.T) {
	ports := []corev1.ContainerPort{{ContainerPort: 80},
		{ContainerPort: 90, HostPort: 91, Protocol: corev1.ProtocolUDP, HostIP: "10.0.0.1"}}
	always := corev1.ContainerRestartPolicyAlways
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want []place.HostPort
	}{
		"host ports": {corev1.PodSpec{Containers: []corev1.Container{{Ports: ports}}},
			[]place.HostPort{{IP: "10.0.0.1", Protocol: "UDP", Port: 91}}},
		"all ports on the host network": {corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Ports: ports}}},
			[]place.HostPort{{Port: 80}, {IP: "10.0.0.1", Protocol: "UDP", Port: 91}}},
		"ports of a sidecar": {corev1.PodSpec{InitContainers: []corev1.Container{{Ports: ports,
			RestartPolicy: &always}}}, []place.HostPort{{IP: "10.0.0.1", Protocol: "UDP", Port: 91}}},
		"ports of an init container": {corev1.PodSpec{InitContainers: []corev1.Container{{Ports: ports}}}, nil},
	} {
		if diff := cmp.Diff(tc.want, hostPortsOf(&tc.spec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnUnschedulablePodIsReportedOnce(t *testing.T) {
	in := func(hosts ...string) *corev1.Pod {
		pod := admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", ""))
		pod.Spec.NodeSelector, pod.Spec.Affinity = nil, admissiontest.ToHosts(hosts...)
		return pod
	}
	leaving := admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", ""))
	leaving.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
	reported := func(nodes ...string) (out []engine.Event) {
		for _, node := range nodes {
			out = append(out, engine.PodUnschedulable{Workload: engine.Key{Namespace: "ns", Name: "w"}, Node: node})
		}
		return out
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		then func(*podWatch)
		want []engine.Event
	}{
		"one node": {admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
			nil, reported("n")},
		"any of several nodes": {in("b", "a", "b"), nil, reported("a", "b")},
		"a pod without a place": {admissiontest.Unschedulable(admissiontest.BoundPod("p", "", "")), nil,
			nil},
		"a terminating pod": {leaving, nil, nil},
		"a pod that waits for others of its gang": {
			admissiontest.Saying(admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
				"minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"), nil, nil},
		"a pod of a gang that does not fit": {
			admissiontest.Saying(admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
				"0/4 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/4 nodes are available: 1 No preemption victims found for incoming pod."), nil,
			[]engine.Event{engine.PodUnschedulable{Workload: engine.Key{Namespace: "ns", Name: "w"}, Node: "n",
				Why: "1 Insufficient cpu, 1 node(s) had untolerated taint(s)"}}},
		"the message of another scheduler": {
			admissiontest.Saying(admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")), "no room"), nil,
			[]engine.Event{engine.PodUnschedulable{Workload: engine.Key{Namespace: "ns", Name: "w"}, Node: "n",
				Why: "no room"}}},
		"a pod that waits for a claim": {
			admissiontest.Saying(admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
				`0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.`), nil, nil},
		"a pod with a missing claim": {admissiontest.Saying(admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
			`0/4 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.`), nil, nil},
		"a pod that was not scheduled yet": {admissiontest.BoundPod("p", "w", ""), nil, nil},
		"a pod that is bound after all": {admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
			func(w *podWatch) { w.set(admissiontest.BoundPod("p", "w", "n"), admissiontest.Now) }, nil},
		"a deleted pod": {admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
			func(w *podWatch) { w.delete(admissiontest.BoundPod("p", "w", "")) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPodWatch()
			w.set(tc.pod, admissiontest.Now)
			if tc.then != nil {
				tc.then(w)
			}
			if got := w.overdue(admissiontest.Now.Add(bindPatience - 1)); got != nil {
				t.Errorf("overdue too early: %+v", got)
			}
			if diff := cmp.Diff(tc.want, w.overdue(admissiontest.Now.Add(bindPatience))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if again := w.overdue(admissiontest.Now.Add(time.Hour)); again != nil || !w.due().IsZero() {
				t.Errorf("reported again %+v, due at %v, want neither", again, w.due())
			}
		})
	}
}

// TestTheLatestRefusalIsReported: another refusal of the same kind does not restart the wait, but one of another kind
// does.
func TestTheLatestRefusalIsReported(t *testing.T) {
	const full, short, volume, affinity = "1 Insufficient cpu", "1 Insufficient cpu, 1 Insufficient memory",
		"1 node(s) had volume node affinity conflict", "1 node(s) didn't match pod anti-affinity rules"
	for name, tc := range map[string]struct {
		first, then string
		at, want    time.Duration
	}{
		"capacity twice":          {full, short, 8 * time.Second, retryPatience},
		"other constraints twice": {volume, affinity, 300 * time.Millisecond, bindPatience},
		"capacity, then a volume": {full, volume, 8 * time.Second, 8*time.Second + bindPatience},
		"a volume, then capacity": {volume, full, 300 * time.Millisecond, 300*time.Millisecond + retryPatience},
	} {
		w := newPodWatch()
		w.set(refusedFor(tc.first), admissiontest.Now)
		w.set(refusedFor(tc.then), admissiontest.Now.Add(tc.at))
		if due := w.due().Sub(admissiontest.Now); due != tc.want {
			t.Errorf("%s: due after %s, want %s", name, due, tc.want)
		}
		want := []engine.Event{engine.PodUnschedulable{Workload: engine.Key{Namespace: "ns", Name: "w"},
			Node: "n", Why: tc.then}}
		if diff := cmp.Diff(want, w.overdue(w.due())); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", name, diff)
		}
	}
}

// TestAPodLosesARaceOnce: a pod loses a race once, however often kube-scheduler's message changes; another pod of its
// name may lose another.
func TestAPodLosesARaceOnce(t *testing.T) {
	w, at := newPodWatch(), admissiontest.Now
	for i, why := range []string{"1 Insufficient cpu", "1 Insufficient cpu, 1 Insufficient memory",
		"1 node(s) had volume node affinity conflict"} {
		w.set(refusedFor(why), at)
		at = w.due()
		if reported := w.overdue(at); len(reported) != 1 || w.lostRaces != 1 {
			t.Errorf("refusal %d: reported %+v and counted %d lost races, want one of each", i+1, reported, w.lostRaces)
		}
	}
	another := refusedFor("1 Insufficient cpu")
	another.UID = "another"
	w.set(another, at)
	w.overdue(w.due())
	if lost := w.TakeLostRaces(); lost != 2 || w.TakeLostRaces() != 0 {
		t.Errorf("took %d lost races of two pods, want 2, and none the second time", lost)
	}
	if w.set(admissiontest.BoundPod("p", "w", "n"), at); len(w.refused) > 0 {
		t.Errorf("refusals after the pod was bound = %+v, want none", w.refused)
	}
}

// TestPodsThatAreNotDueCostNothing: they are checked in each turn of the loop, and there may be many.
func TestPodsThatAreNotDueCostNothing(t *testing.T) {
	w := newPodWatch()
	for i := range 5000 {
		w.set(admissiontest.Unschedulable(admissiontest.BoundPod(fmt.Sprint("p", i), "w", "")), admissiontest.Now)
	}
	if allocs := testing.AllocsPerRun(10, func() { w.overdue(admissiontest.Now); w.due() }); allocs > 0 {
		t.Errorf("%v allocations in a turn, want none", allocs)
	}
}

func TestPodChangeMatters(t *testing.T) {
	started := admissiontest.BoundPod("p", "w", "n")
	started.Status.Phase, started.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	resized := admissiontest.BoundPod("p", "w", "n")
	resized.Spec.Containers[0].Resources.Requests = admissiontest.Quantities("cpu", "2")
	deleted := func(pod *corev1.Pod) *corev1.Pod {
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
		return pod
	}
	byHand := func() *corev1.Pod {
		pod := admissiontest.BoundPod("p", "w", "n")
		pod.Spec.NodeSelector = map[string]string{jobset.NamespacedJobKey: "default_w-0"}
		return pod
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"terminating": {admissiontest.BoundPod("p", "w", "n"),
			deleted(admissiontest.BoundPod("p", "w", "n")), false},
		"terminating on a node chosen by labels": {byHand(), deleted(byHand()), true},
		"started":                                {admissiontest.BoundPod("p", "w", "n"), started, false},
		"bound": {admissiontest.BoundPod("p", "w", ""),
			admissiontest.BoundPod("p", "w", "n"), true},
		"ended":   {started, admissiontest.Ended(admissiontest.BoundPod("p", "w", "n")), true},
		"resized": {started, resized, true},
		"unschedulable": {admissiontest.BoundPod("p", "w", ""),
			admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")), true},
		"still unschedulable": {admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
			admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")), false},
		"unschedulable for another reason": {refusedFor("1 Insufficient cpu"),
			refusedFor("1 node(s) had volume node affinity conflict"), true},
		"unschedulable with another number of nodes": {refusedFor("1 Insufficient cpu"),
			admissiontest.Saying(admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")),
				"0/9 nodes are available: 1 Insufficient cpu."), false},
		"gate removed": {gated(admissiontest.BoundPod("p", "w", "")), admissiontest.BoundPod("p", "w", ""), false},
	} {
		if got := ChangeMatters(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: changeMatters = %v, want %v", name, got, tc.want)
		}
	}
}
