package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/rendezvous/progress"
)

// reporter is a pod that reports, and the run of the job that it belongs to.
type reporter struct {
	rank progress.Rank
	// run is the key of the job's Workload, the zero value if the job has none that runs.
	run progress.Key
}

// errNoJob is returned to a pod that belongs to no job, errOtherJob to one that reports for another job.
var (
	errNoJob    = errors.New("the pod belongs to no job")
	errOtherJob = errors.New("the pod belongs to another job")
)

// mostOwners bounds how many objects may be between a pod and its job: a batch Job and a VCJob are.
const mostOwners = 4

// between returns an empty object of a kind that may be between a pod and its job, nil for other kinds: their objects
// are jobs whose owners are not asked.
func between(kind schema.GroupKind) client.Object {
	switch kind {
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return &batchv1.Job{}
	case schema.GroupKind{Group: volcano.GroupVersion.Group, Kind: "Job"}:
		return &volcano.Job{}
	}
	return nil
}

// reporterOf returns what the pod reports for. It belongs to the nearest of the objects above it, each the controller
// of the one below, that has a Workload of its own. The name must be that of one of them: a JobSet's pod may report for
// its Job or for the JobSet.
func (r *reports) reporterOf(ctx context.Context, agent caller, name string) (reporter, error) {
	var pod corev1.Pod
	key := client.ObjectKey{Namespace: agent.Namespace, Name: agent.Name}
	if err := r.client.Get(ctx, key, &pod, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return reporter{}, fmt.Errorf("reading pod %s: %w", key, err)
	} else if err != nil || string(pod.UID) != agent.UID {
		return reporter{}, errNoJob
	}
	out := reporter{rank: progress.Rank{Index: orderOf(&pod), Name: pod.Name}}
	var names []string
	for object := client.Object(&pod); object != nil && len(names) < mostOwners; {
		owner := metav1.GetControllerOfNoCopy(object)
		if owner == nil {
			break
		}
		names = append(names, owner.Name)
		var runs bool
		if out.run, runs = r.runOf(agent.Namespace, owner.UID); runs {
			break
		}
		var err error
		if object, err = r.ownerBetween(ctx, agent.Namespace, owner); err != nil {
			return reporter{}, err
		}
	}
	switch {
	case len(names) == 0:
		return reporter{}, errNoJob
	case !slices.Contains(names, name):
		return reporter{}, fmt.Errorf("%w: %s", errOtherJob, names[len(names)-1])
	}
	return out, nil
}

// ownerBetween returns the owner if it exists and may be between a pod and its job, else nil.
func (r *reports) ownerBetween(ctx context.Context, namespace string,
	owner *metav1.OwnerReference) (client.Object, error) {
	object := between(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind())
	if object == nil {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: namespace, Name: owner.Name}
	switch err := r.client.Get(ctx, key, object, client.UnsafeDisableDeepCopy); {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading %s %s: %w", owner.Kind, key, err)
	case err != nil || object.GetUID() != owner.UID:
		return nil, nil
	}
	return object, nil
}

// orderOf returns the indexes that order the pod among those of its job, by any of the job APIs.
func orderOf(pod *corev1.Pod) []int {
	if found := indexOf(pod); len(found) > 0 {
		return found
	}
	for _, key := range []string{volcano.TaskIndexKey, breezeml.ReplicaIndexLabel, jobset.JobIndexKey} {
		if n, err := strconv.Atoi(pod.Labels[key]); err == nil {
			return []int{n}
		}
	}
	return nil
}
