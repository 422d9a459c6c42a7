package jobset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestExistingServiceOfTheSubdomain checks whether a JobSet uses, shares or reports a Service that exists.
func TestExistingServiceOfTheSubdomain(t *testing.T) {
	other := []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "other", UID: "other",
		Controller: ptr.To(true)}}
	joined := metav1.OwnerReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "js", UID: "js-uid"}
	const taken = "Warning HeadlessServiceCreationFailed: the Service net, which would give the pods their host names, is there already, and is not headless or selects other pods:" +
		" delete it, or set spec.network.subdomain of a new JobSet to another name"
	for name, tc := range map[string]struct {
		owners   []metav1.OwnerReference
		spec     corev1.ServiceSpec
		selector map[string]string // the new one; nil if the Service is left alone
		events   []string
	}{
		"own": {ownedByTheSet(), corev1.ServiceSpec{}, nil, nil},
		"another JobSet's": {other,
			corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"jobset.sigs.k8s.io/jobset-name": "other"}},
			map[string]string{"muster.dev/subdomain": "net"}, nil},
		"shared already": {other,
			corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"muster.dev/subdomain": "net"}},
			map[string]string{"muster.dev/subdomain": "net"}, nil},
		"joined already": {append([]metav1.OwnerReference{joined}, other...), corev1.ServiceSpec{}, nil, nil},
		"user's that selects the pods": {nil,
			corev1.ServiceSpec{ClusterIP: "None",
				Selector: map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}}, nil, nil},
		"user's that selects other pods": {nil,
			corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"jobset.sigs.k8s.io/jobset-name": "other"}}, nil,
			[]string{taken}},
		"user's without a selector": {nil, corev1.ServiceSpec{ClusterIP: "None"}, nil, []string{taken}},
		"user's that is not headless": {nil,
			corev1.ServiceSpec{ClusterIP: "10.0.0.1", Selector: map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}}, nil,
			[]string{taken}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: "ns",
				OwnerReferences: tc.owners}, Spec: tc.spec}
			b := newSet()
			b.js.Spec.Network = &jobset.Network{Subdomain: "net"}
			p := checkedPlan(t, b.js, unqueued,
				[]client.Object{found, job("leader", 0).ready().job, job("workers", 0).ready().job, job("workers", 1).ready().job})
			same(t, "events", tc.events, events(p))
			if tc.selector == nil {
				same(t, "writes", nil, writes(p))
				return
			}
			same(t, "writes", []string{"change Service net"}, writes(p))
			shared := p.Writes[0].Object().(*corev1.Service)
			same(t, "selector", tc.selector, shared.Spec.Selector)
			same(t, "owners", append(append([]metav1.OwnerReference{}, other...), joined), shared.OwnerReferences)
			if !shared.Spec.PublishNotReadyAddresses || p.Due.IsZero() {
				t.Errorf("publishes not ready addresses: %v, due %v; want true and a due time",
					shared.Spec.PublishNotReadyAddresses, p.Due)
			}
		})
	}
}

func TestServicePerReplicatedJobOnlyIfRequested(t *testing.T) {
	b := newSet()
	b.js.Annotations = map[string]string{"muster.dev/service-per-replicated-job": "true"}
	p := checkedPlan(t, b.js, unqueued, nil)
	same(t, "Services", []string{"create Service js", "create Service js-leader",
		"create Service js-workers"}, writes(p)[:3])
	service := created(p)["js-workers"].(*corev1.Service)
	same(t, "selector", map[string]string{"jobset.sigs.k8s.io/jobset-name": "js",
		"jobset.sigs.k8s.io/replicatedjob-name": "workers"}, service.Spec.Selector)
	same(t, "labels", map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}, service.Labels)
	if service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("spec = %+v, want it headless with addresses of pods that are not ready", service.Spec)
	}
	service.OwnerReferences = ownedByTheSet()
	same(t, "writes if one of them exists", []string{"create Service js-leader"},
		writes(checkedPlan(t, b.js, unqueued, []client.Object{serviceOf("js"), service}))[:1])
}

// serviceOf returns a Service that the JobSet controls.
func serviceOf(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", OwnerReferences: ownedByTheSet()}}
}

func TestPodLabelsAndPlacementAnnotations(t *testing.T) {
	b := newSet()
	const exclusive, strategy = "alpha.jobset.sigs.k8s.io/exclusive-topology", "alpha.jobset.sigs.k8s.io/node-selector"
	b.js.Annotations = map[string]string{exclusive: "rack", strategy: "true"}
	b.js.Spec.ReplicatedJobs[1].Template.Annotations = map[string]string{exclusive: "zone"}
	p := checkedPlan(t, b.js, unqueued, nil)
	for name, want := range map[string]string{"js-leader-0": "rack", "js-workers-0": "zone"} {
		job := createdJob(t, p, name)
		for kind, got := range map[string]map[string]string{"Job": job.Annotations, "pods": job.Spec.Template.Annotations} {
			if got[exclusive] != want || got[strategy] != "true" {
				t.Errorf("annotations of the %s of %s = %v, want %s and true", kind, name, got, want)
			}
		}
		if _, on := job.Labels[jobset.PriorityKey]; on || job.Spec.Template.Labels[jobset.PriorityKey] != "0" {
			t.Errorf("labels of the Job %v, of its pods %v; want the priority 0 on the pods only", job.Labels,
				job.Spec.Template.Labels)
		}
	}
	b.js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.PriorityClassName = "missing"
	if got, on := createdJob(t, checkedPlan(t, b.js, unqueued, nil),
		"js-leader-0").Spec.Template.Labels[jobset.PriorityKey]; on {
		t.Errorf("the priority label for a class that does not exist is %s, want none", got)
	}
}
