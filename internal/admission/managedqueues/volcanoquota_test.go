package managedqueues

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
)

// aQueue returns a Volcano Queue with that spec.
func aQueue(name string, spec scheduling.QueueSpec) *scheduling.Queue {
	return &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}, Spec: spec}
}

// limitsOf returns "resource=nominal", "+borrowing limit" and "-lending limit" of a ClusterQueue.
func limitsOf(q *kueue.ClusterQueue) []string {
	var out []string
	for _, group := range q.Spec.ResourceGroups {
		for _, r := range group.Flavors[0].Resources {
			text := string(r.Name) + "=" + r.NominalQuota.String()
			if r.BorrowingLimit != nil {
				text += " +" + r.BorrowingLimit.String()
			}
			if r.LendingLimit != nil {
				text += " -" + r.LendingLimit.String()
			}
			out = append(out, text)
		}
	}
	return out
}

// clusterQueueFor returns the ClusterQueue for a Queue that is the only one.
func clusterQueueFor(q *scheduling.Queue, cluster corev1.ResourceList) *kueue.ClusterQueue {
	only := map[string]*scheduling.Queue{q.Name: q}
	return nest(only, only).clusterQueue(q, cluster)
}

func TestQuotaOfAVolcanoQueue(t *testing.T) {
	cluster := admissiontest.Quantities("cpu", "10", "memory", "10Gi")
	for _, c := range []struct {
		name string
		spec scheduling.QueueSpec
		want []string
	}{
		{"a weight only", scheduling.QueueSpec{Weight: 2}, []string{"cpu=0", "memory=0"}},
		{"deserved", scheduling.QueueSpec{Deserved: admissiontest.Quantities("cpu", "4")}, []string{"cpu=4", "memory=0"}},
		{"guaranteed, which is not lent", scheduling.QueueSpec{Deserved: admissiontest.Quantities("cpu", "4"),
			Guarantee: scheduling.Guarantee{Resource: admissiontest.Quantities("cpu", "3")}},
			[]string{"cpu=4 -1", "memory=0"}},
		{"a guarantee above what it deserves",
			scheduling.QueueSpec{Guarantee: scheduling.Guarantee{Resource: admissiontest.Quantities("cpu", "3")}},
			[]string{"cpu=3 -0", "memory=0"}},
		{"a capability", scheduling.QueueSpec{Deserved: admissiontest.Quantities("cpu", "4"),
			Capability: admissiontest.Quantities("cpu", "6", "memory", "1Gi")},
			[]string{"cpu=4 +2", "memory=0 +1Gi"}},
		{"a capability below what it deserves", scheduling.QueueSpec{Deserved: admissiontest.Quantities("cpu", "9"),
			Capability: admissiontest.Quantities("cpu", "6")}, []string{"cpu=6 +0", "memory=0"}},
		{"a resource that no node has", scheduling.QueueSpec{Capability: admissiontest.Quantities("nvidia.com/gpu", "8")},
			[]string{"cpu=0", "memory=0", "nvidia.com/gpu=0 +8"}},
	} {
		if got := limitsOf(clusterQueueFor(aQueue("q", c.spec), cluster)); !slices.Equal(got, c.want) {
			t.Errorf("%s: quota = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPriorityAndStrategyOfAVolcanoQueue(t *testing.T) {
	plain := clusterQueueFor(aQueue("q", scheduling.QueueSpec{}), nil)
	if len(plain.Annotations) != 0 || plain.Spec.QueueingStrategy != kueue.BestEffortFIFO ||
		plain.Spec.FairSharing.Weight.Value() != 1 || plain.Spec.ResourceGroups != nil {
		t.Errorf("ClusterQueue of a plain Queue = %+v", plain)
	}
	ranked := clusterQueueFor(aQueue("q", scheduling.QueueSpec{Weight: 7, Priority: 1000, Reclaimable: ptr.To(false),
		DequeueStrategy: scheduling.DequeueStrategyFIFO}), nil)
	want := map[string]string{muster.QueuePriorityAnnotation: "100", muster.PreemptibleAnnotation: "false"}
	if diff := cmp.Diff(want, ranked.Annotations); diff != "" || ranked.Spec.QueueingStrategy != kueue.StrictFIFO ||
		ranked.Spec.FairSharing.Weight.Value() != 7 {
		t.Errorf("ClusterQueue of a Queue with priority = %+v\n%s", ranked.Spec, diff)
	}
}

func TestVolcanoQueuesShareUndeservedCapacity(t *testing.T) {
	cluster := admissiontest.Quantities("cpu", "10", "memory", "10Gi")
	one := clusterQueueFor(aQueue("one", scheduling.QueueSpec{Deserved: admissiontest.Quantities("cpu", "4")}), cluster)
	two := clusterQueueFor(aQueue("two", scheduling.QueueSpec{Deserved: admissiontest.Quantities("cpu", "9")}), cluster)
	for want, queues := range map[string]map[string]*kueue.ClusterQueue{"6": {"one": one}, "0": {"one": one, "two": two}} {
		left := sharedQuota(cluster, queues, nil)
		if cpu := left[corev1.ResourceCPU]; cpu.String() != want {
			t.Errorf("quota shared by %d queues = %s cpu, want %s", len(queues), cpu.String(), want)
		}
	}
}

func TestStatusOfAVolcanoQueue(t *testing.T) {
	q := &kueue.ClusterQueue{Status: kueue.ClusterQueueStatus{PendingWorkloads: 3, ReservingWorkloads: 5,
		AdmittedWorkloads: 4,
		FlavorsReservation: []kueue.FlavorUsage{{Name: "default",
			Resources: []kueue.ResourceUsage{{Name: "cpu", Total: admissiontest.Quantities("cpu", "2")["cpu"]},
				{Name: "memory"}}}}}}
	got := volcanoStatus(scheduling.QueueStatus{}, q, 7)
	want := scheduling.QueueStatus{State: scheduling.QueueStateOpen, Pending: 3, Running: 4, Inqueue: 1, Completed: 7,
		Allocated: admissiontest.Quantities("cpu", "2")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	q.Annotations = map[string]string{muster.ClosedAnnotation: "true"}
	if got := volcanoStatus(scheduling.QueueStatus{}, q, 0); got.State != scheduling.QueueStateClosing {
		t.Errorf("state of a closed Queue with running jobs = %s, want Closing", got.State)
	}
	q.Status.AdmittedWorkloads = 0
	if got := volcanoStatus(scheduling.QueueStatus{}, q, 0); got.State != scheduling.QueueStateClosed {
		t.Errorf("state of a closed Queue = %s, want Closed", got.State)
	}
	if got := volcanoStatus(scheduling.QueueStatus{}, nil, 0); got.State != scheduling.QueueStateUnknown {
		t.Errorf("state without a ClusterQueue = %s, want Unknown", got.State)
	}
}
