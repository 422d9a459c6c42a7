package admissiontest

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/workload"
)

// Now is the time at which tests begin.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// NewWorkload returns ns/name in the queue q, with count pods in the pod set main.
func NewWorkload(name string, count int32, requests corev1.ResourceList) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name + "-uid"), Generation: 1,
			CreationTimestamp: metav1.NewTime(Now)},
		Spec: kueue.WorkloadSpec{QueueName: "q",
			PodSets: []kueue.PodSet{{Name: "main", Count: count, Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
					Resources: corev1.ResourceRequirements{Requests: requests}}}}}}}},
	}
}

// NewFlavor returns a ResourceFlavor without node labels.
func NewFlavor(name string) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// NewClusterQueue returns a ClusterQueue with cpu quota in the flavor f for every namespace.
func NewClusterQueue(name, cpu string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []kueue.FlavorQuotas{{
			Name: "f", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse(cpu)}}}}}},
	}}
}

// NewLocalQueue returns a LocalQueue in the namespace ns.
func NewLocalQueue(name, clusterQueue string) *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Generation: 1},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(clusterQueue)}}
}

// Namespace is the namespace ns.
var Namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}

// Conditions returns the conditions as lines "Type=Status Reason: message".
func Conditions(list []metav1.Condition) []string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

// ReservedWorkload returns a Workload without owner in the queue q that holds quota of the ClusterQueue cq.
func ReservedWorkload(name string) *kueue.Workload {
	w := NewWorkload(name, 1, nil)
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main"}}}
	workload.SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason, "", Now)
	return w
}

// AdmittedWorkload returns a ReservedWorkload that is admitted.
func AdmittedWorkload(name string) *kueue.Workload {
	w := ReservedWorkload(name)
	workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason, "", Now)
	return w
}

// ElasticWorkload requests between `fewest` and `most` pods of 3 cpu.
func ElasticWorkload(name string, fewest, most int32) *kueue.Workload {
	w := NewWorkload(name, most, Quantities("cpu", "3"))
	w.Spec.PodSets[0].MinCount = ptr.To(fewest)
	metav1.SetMetaDataAnnotation(&w.Spec.PodSets[0].Template.ObjectMeta, muster.MinReplicasAnnotation, "1")
	return w
}

// Gang returns an admission of the pod set main in flavor f with the places.
func Gang(places ...place.NodeCount) *engine.Admission {
	var count int32
	for _, p := range places {
		count += p.Count
	}
	given := Given("cq", count)
	given.PodSets[0].Places = places
	return given
}

// PlacedFlavor returns a ResourceFlavor that names a topology.
func PlacedFlavor(name, topology string) *kueue.ResourceFlavor {
	out := NewFlavor(name)
	out.Spec.NodeLabels = map[string]string{corev1.LabelOSStable: "linux"}
	out.Spec.TopologyName = ptr.To(kueue.TopologyReference(topology))
	return out
}

// BoundPod returns the pod ns/name with one cpu, of the Workload ("" for none), bound to the node ("" for none yet).
// Its place is on n.
func BoundPod(name, workload, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: corev1.PodSpec{NodeName: node, NodeSelector: map[string]string{corev1.LabelHostname: "n"},
			Containers: []corev1.Container{{Name: "c",
				Resources: corev1.ResourceRequirements{Requests: Quantities("cpu", "1")}}}},
	}
	if workload != "" {
		pod.Annotations = map[string]string{"kueue.x-k8s.io/workload": workload}
		pod.Labels = map[string]string{"kueue.x-k8s.io/podset": "main"}
	}
	return pod
}

// Unschedulable returns the pod as kube-scheduler leaves it that finds no node for it.
func Unschedulable(pod *corev1.Pod) *corev1.Pod {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
	return pod
}

// Saying marks the pod unschedulable with the message.
func Saying(pod *corev1.Pod, message string) *corev1.Pod {
	pod.Status.Conditions[0].Message = message
	return pod
}

// Ended returns the pod as one that has succeeded.
func Ended(pod *corev1.Pod) *corev1.Pod { pod.Status.Phase = corev1.PodSucceeded; return pod }

// ToHosts returns an affinity for any of the hosts.
func ToHosts(hosts ...string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}}}}}}}
}

// Topology returns a Topology with these levels.
func Topology(name string, levels ...string) *kueue.Topology {
	out := &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, level := range levels {
		out.Spec.Levels = append(out.Spec.Levels, kueue.TopologyLevel{NodeLabel: level})
	}
	return out
}

// Once returns the error for the first write only.
func Once(err error) func(string) error {
	var first sync.Once
	return func(string) (answer error) {
		first.Do(func() { answer = err })
		return answer
	}
}

// QueueStatusInterval is the default of the configuration.
const QueueStatusInterval = 5 * time.Second

// Admit makes the Workload hold what was given since then, without places. It is admitted unless it has checks, which
// are pending.
func Admit(w *kueue.Workload, given *engine.Admission, at time.Time) {
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(given.ClusterQueue)}
	for _, a := range given.PodSets {
		assignment := kueue.PodSetAssignment{Name: kueue.PodSetReference(a.PodSet), Count: ptr.To(a.Count),
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{}, ResourceUsage: corev1.ResourceList{}}
		for resource, flavor := range a.Flavors {
			name := corev1.ResourceName(resource)
			assignment.Flavors[name] = kueue.ResourceFlavorReference(flavor)
			assignment.ResourceUsage[name] = quota.ToQuantity(name, a.Usage[resource])
		}
		w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, assignment)
	}
	w.Status.AdmissionChecks = nil
	for _, check := range given.Checks {
		w.Status.AdmissionChecks = append(w.Status.AdmissionChecks, kueue.AdmissionCheckState{
			Name: kueue.AdmissionCheckReference(check), State: kueue.CheckStatePending})
	}
	workload.SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason, "", at)
	if len(given.Checks) == 0 {
		workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason, "", at)
	}
	workload.ResumeQueueing(w, at)
	if workload.IsEvicted(w) {
		workload.SetCondition(w, kueue.WorkloadEvicted, metav1.ConditionFalse, kueue.WorkloadQuotaReservedReason, "", at)
	}
}

// Given returns the admission of that many pods of one CPU in the pod set main, in the flavor f.
func Given(clusterQueue string, pods int32) *engine.Admission {
	return &engine.Admission{ClusterQueue: clusterQueue, PodSets: []engine.Assignment{{
		PodSet: "main", Count: pods, Flavors: map[string]string{"cpu": "f"},
		Usage: map[string]int64{"cpu": int64(pods) * 1000}}}}
}

// ErrTooLarge is the API server's answer to an object that etcd refuses to store for its size.
var ErrTooLarge = InternalError("etcdserver: request is too large")

// InternalError is the answer of an API server to an error that it does not know.
func InternalError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
		Reason: metav1.StatusReasonUnknown, Message: message}}
}

// Always returns the error for every write.
func Always(err error) func(string) error { return func(string) error { return err } }

// Domains returns an assignment of places by the levels.
func Domains(levels []string, domains ...kueue.TopologyDomainAssignment) *kueue.TopologyAssignment {
	return &kueue.TopologyAssignment{Levels: levels, Domains: domains}
}

// Domain returns that many places in the domain with these values of the levels.
func Domain(count int32, values ...string) kueue.TopologyDomainAssignment {
	return kueue.TopologyDomainAssignment{Values: values, Count: count}
}
