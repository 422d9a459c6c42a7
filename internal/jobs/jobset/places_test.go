package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// twoByFour returns a JobSet with two Jobs of four pods each.
func twoByFour() *jobset.JobSet {
	b := setBuilder{&jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns",
		UID: "js-uid"}}}.with("workers", 2)
	b.js.Spec.ReplicatedJobs[0].Template.Spec.Parallelism = ptr.To[int32](4)
	b.js.Spec.ReplicatedJobs[0].Template.Spec.Completions = ptr.To[int32](4)
	return b.js
}

// on returns a place for this many pods on the node.
func on(node string, count int32) podspec.Place {
	return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: count}
}

// grantPlaces returns an admission of the workers with these places, on nodes that fit two of their pods each; nodes a
// and b are in one rack, c and d in another.
func grantPlaces(places ...podspec.Place) jobs.Admission {
	nodes := jobs.Nodes{}
	for name, rack := range map[string]string{"a": "r1", "b": "r1", "c": "r2", "d": "r2"} {
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": rack}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}}
	}
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{"workers": {
		Count: 8, Asked: 8, Left: 8, Places: places, Nodes: nodes,
		Injection: podspec.Injection{Annotations: map[string]string{kueue.WorkloadAnnotation: "wl"}}}}}
}

// hostNames returns the host names that a template selects.
func hostNames(spec corev1.PodSpec) []string {
	if name := spec.NodeSelector[corev1.LabelHostname]; name != "" {
		return []string{name}
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return required.NodeSelectorTerms[0].MatchExpressions[0].Values
}

func TestEachJobOfAReplicatedJobGetsThePlacesOfItsRanks(t *testing.T) {
	p := checkedPlan(t, twoByFour(), grantPlaces(on("a", 2), on("b", 2), on("c", 2), on("d", 1), on("a", 1)), nil)
	first, second := createdJob(t, p, "js-workers-0").Spec.Template, createdJob(t, p, "js-workers-1").Spec.Template
	same(t, "nodes of the first Job, which it fills", []string{"a", "b"}, hostNames(first.Spec))
	same(t, "gates of the second Job", []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}, second.Spec.SchedulingGates)
	same(t, "nodes of the second Job", nil, hostNames(second.Spec))
	if first.Annotations[kueue.WorkloadAnnotation] != "wl" {
		t.Errorf("annotations = %v, want the Workload wl", first.Annotations)
	}
}

func TestResumingLeavesNothingOfEarlierPlaces(t *testing.T) {
	js := twoByFour()
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Affinity =
		&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
	old := createdJob(t, checkedPlan(t, js, grantPlaces(on("a", 2), on("b", 2), on("c", 4)), nil), "js-workers-0")
	old.Spec.Suspend = ptr.To(true)
	p := checkedPlan(t, js, grantPlaces(on("c", 4), on("d", 4)),
		[]client.Object{service(), old, job("workers", 1).ready().job})
	same(t, "writes", []string{"change Job js-workers-0"}, writes(p))
	got := p.Writes[0].Object().(*batchv1.Job).Spec.Template.Spec
	same(t, "nodes", []string{"c"}, hostNames(got))
	same(t, "affinity", &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}, got.Affinity)
	p = checkedPlan(t, js, grantPlaces(on("c", 2), on("d", 2), on("a", 4)),
		[]client.Object{service(), old, job("workers", 1).ready().job})
	got = p.Writes[0].Object().(*batchv1.Job).Spec.Template.Spec
	same(t, "nodes, if it fills several", []string{"c", "d"}, hostNames(got))
	same(t, "affinity to other pods then", &corev1.PodAntiAffinity{}, got.Affinity.PodAntiAffinity)
}

// TestJobIsRestartedOnTheNodesOfARepair: a Job whose template selects nodes is suspended if it gets others; gated pods
// are placed one by one, so their Job is left alone.
func TestJobIsRestartedOnTheNodesOfARepair(t *testing.T) {
	p := checkedPlan(t, twoByFour(), grantPlaces(on("a", 4), on("b", 3), on("c", 1)), nil)
	pinned, gated := createdJob(t, p, "js-workers-0"), createdJob(t, p, "js-workers-1")
	children := []client.Object{service(), pinned, gated}
	for _, job := range []*batchv1.Job{pinned, gated} {
		job.Status.Active, job.Status.Ready = 4, ptr.To[int32](4)
	}
	js := twoByFour()
	js.Status.Conditions = statusOf(p).Conditions
	same(t, "writes while nothing changes", nil,
		writes(checkedPlan(t, js, grantPlaces(on("a", 4), on("b", 3), on("c", 1)), children)))
	p = checkedPlan(t, js, grantPlaces(on("d", 4), on("b", 3), on("d", 1)), children)
	same(t, "writes after a repair", []string{"change Job js-workers-0, suspended"}, writes(p))
	same(t, "events",
		[]string{"Warning Moved: The pods of Job js-workers-0 are stopped and started again: it was given other nodes, and its pod template names its previous ones"}, events(p)[:1])
}

// TestJobIsRestartedWhateverOthersItWaitedFor: slow comes first in order, and is not ready any more.
func TestJobIsRestartedWhateverOthersItWaitedFor(t *testing.T) {
	js := twoByFour()
	slow := *js.Spec.ReplicatedJobs[0].DeepCopy()
	slow.Name, slow.Replicas = "slow", 1
	js.Spec.ReplicatedJobs = append([]jobset.ReplicatedJob{slow}, js.Spec.ReplicatedJobs...)
	granted := func(node string) jobs.Admission {
		out := grantPlaces(on(node, 4), on("b", 3), on("c", 1))
		out.PodSets["slow"] = jobs.PodSetAdmission{Count: 4, Asked: 4, Left: 4}
		return out
	}
	p := checkedPlan(t, js, granted("a"), nil)
	children := []client.Object{service()}
	for _, name := range []string{"js-slow-0", "js-workers-0", "js-workers-1"} {
		job := createdJob(t, p, name)
		job.Status.Active = 4
		children = append(children, job)
	}
	js.Status.Conditions = statusOf(p).Conditions
	js.Spec.StartupPolicy = &jobset.StartupPolicy{StartupPolicyOrder: jobset.InOrder}
	same(t, "writes after a repair", []string{"change Job js-workers-0, suspended"},
		writes(checkedPlan(t, js, granted("d"), children)))
}
