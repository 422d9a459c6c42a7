package vcjob

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// API is the API of VCJobs. A VCJob without a queue uses the queue default.
var API = jobs.API[*volcano.Job]{
	Kind: kind,
	// Pods start and finish one by one, and the status counts them.
	StatusDelay: countsDelay,
	PodLabel:    muster.JobUIDLabel,
	Describe:    describe,
	Plan:        plan,
	Watch: jobs.Watch{
		Owns:    []client.Object{&corev1.Pod{}, &bus.Command{}},
		Targets: targetOf,
		Matters: jobs.PodChanges(func(was, is *corev1.Pod) bool {
			return restartsOf(was) != restartsOf(is) || unschedulableSince(was) != unschedulableSince(is)
		}),
		Expected:   expected,
		BatchDelay: jobs.PodBatchDelay,
	},
	Queueing: jobs.Queueing[*volcano.Job]{
		Rule:  jobs.QueueRequired,
		Field: queueOf,
	},
	Reads: jobs.Reads[*volcano.Job]{
		Kinds: []schema.GroupResource{podGroups},
	},
	Abilities: jobs.Abilities{
		Resizes: true,
		AnyPods: true,
		Gangs:   true,
	},
}

// targetOf returns the name and UID of the job that a Command targets.
func targetOf(object client.Object) (string, types.UID) {
	command, ok := object.(*bus.Command)
	if !ok || command.TargetObject == nil || command.TargetObject.Kind != kind.Kind {
		return "", ""
	}
	if len(validation.IsDNS1123Subdomain(command.TargetObject.Name)) > 0 {
		return "", "" // no Job has such a name. Volcano's own definition accepts it
	}
	if target := command.TargetObject; target.UID == "" && target.APIVersion != "" &&
		target.APIVersion != volcano.GroupVersion.String() {
		return "", "" // a Job of another API
	}
	return command.TargetObject.Name, command.TargetObject.UID
}

// expected reports whether a new pod has no node and no conditions yet. The plan that creates pods
// schedules a reconcile to count them, so their creation needs none.
func expected(child client.Object) bool {
	pod, isPod := child.(*corev1.Pod)
	return isPod && pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName == "" && pod.Status.Phase == corev1.PodPending &&
		len(pod.Status.Conditions) == 0
}
