package genericjob

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// boundsOf returns the bounds of the number of replicas from which the queue may choose.
func boundsOf(spec *tensorstack.ReplicaSpec) jobs.Bounds {
	return jobs.BoundsOf(spec.Template.Annotations, count(spec))
}

// count returns the number of replicas that the spec asks for.
func count(spec *tensorstack.ReplicaSpec) int32 { return ptr.Deref(spec.Replicas, 1) }

// sizesOf returns the number of replicas of each type: as many as were granted, or, without a grant, as
// many as there were last. None is negative, and together they are no more than mostReplicas, since they
// decide how much memory a plan takes.
func sizesOf(job *tensorstack.GenericJob, admission jobs.Admission, pods []*corev1.Pod) map[string]int32 {
	out, left := make(map[string]int32, len(job.Spec.ReplicaSpecs)), int32(mostReplicas)
	for spec := range pointers.To(job.Spec.ReplicaSpecs) {
		granted := admission.PodSets[spec.Type]
		b, size := granted.Bounds(boundsOf(spec)), count(spec)
		switch last := taskOf(&job.Status, spec.Type); {
		case !b.Elastic || admission.Grant == jobs.Unqueued:
		case admission.Grant == jobs.Admitted && outcomeOf(job) == nil:
			size = b.Size(granted.Count)
			if last == nil {
				break
			}
			if succeeded := finalSuccesses(job, spec, last, pods); len(succeeded) > 0 {
				size = sizeAfterSuccess(int32(len(last.Replicas)), succeeded, size)
			}
		case last != nil:
			size = int32(len(last.Replicas))
		}
		out[spec.Type] = max(0, min(size, left))
		left -= out[spec.Type]
	}
	return out
}

// finalSuccesses returns which of the type's last replicas have succeeded for good. Once there are some, no replicas
// are added, as they would repeat work that is done.
func finalSuccesses(job *tensorstack.GenericJob, spec *tensorstack.ReplicaSpec, last *tensorstack.Tasks,
	pods []*corev1.Pod) map[int32]bool {
	if restart(spec.RestartPolicy).OnSuccess {
		return nil
	}
	out := map[int32]bool{}
	for i := range last.Replicas {
		if last.Replicas[i].Phase == tensorstack.ReplicaSucceeded {
			out[int32(i)] = true
		}
	}
	for _, pod := range pods {
		index, its := replicas.IndexOf(job.Name, spec.Type, pod.Name)
		if its && int(index) < len(last.Replicas) && pod.Status.Phase == corev1.PodSucceeded && !replicas.IsTerminating(pod) {
			out[index] = true
		}
	}
	return out
}

// sizeAfterSuccess returns how many of the last replicas there are with quota for so many pods: replicas that have
// succeeded need none. With 4 replicas, of which the first has succeeded, and quota for 2 pods, there are 3.
func sizeAfterSuccess(last int32, succeeded map[int32]bool, quota int32) (size int32) {
	for ; size < last; size++ {
		if succeeded[size] {
			continue
		}
		if quota == 0 {
			break
		}
		quota--
	}
	return size
}

// groups returns the types as groups of replicas.
func groups(job *tensorstack.GenericJob, sizes map[string]int32) []replicas.Group {
	out := make([]replicas.Group, 0, len(job.Spec.ReplicaSpecs))
	for spec := range pointers.To(job.Spec.ReplicaSpecs) {
		out = append(out, replicas.Group{Name: spec.Type, Count: sizes[spec.Type], Restart: restart(spec.RestartPolicy)})
	}
	return out
}

// restart returns the restart policy: OnFailure by default, with the spec's limit.
func restart(p tensorstack.RestartPolicy) replicas.Restart {
	return replicas.Restart{
		OnFailure: p.Policy != tensorstack.RestartNever,
		OnSuccess: p.Policy == tensorstack.RestartAlways,
		Limit:     p.Limit,
	}
}

// succeeded returns the number of the type's replicas that have succeeded and do not run again.
func (v *view) succeeded(spec *tensorstack.ReplicaSpec) int32 {
	if restart(spec.RestartPolicy).OnSuccess {
		return 0
	}
	return pointers.Count(v.roster.Group(spec.Type), replicas.In(replicas.Succeeded))
}

// ready reports whether the minimum of each type's replicas is ready or final; so a job whose rules
// tolerate a failed replica can be ready without it.
func (v *view) ready() bool {
	for replicaType, need := range v.least() {
		up := pointers.Count(v.roster.Group(replicaType), func(r *replicas.Replica) bool { return r.Ready || r.Final() })
		if up < need {
			return false
		}
	}
	return true
}

// least returns the minimum number of replicas of each type for the job to run.
func (v *view) least() map[string]int32 {
	out := make(map[string]int32, len(v.sizes))
	for spec := range pointers.To(v.job.Spec.ReplicaSpecs) {
		out[spec.Type] = v.sizes[spec.Type]
		if b := v.seen.Admission.PodSets[spec.Type].Bounds(boundsOf(spec)); b.Elastic {
			out[spec.Type] = min(out[spec.Type], b.Least)
		}
	}
	return out
}

// badSize returns what is wrong with the job's numbers of replicas, "" if nothing is.
func badSize(job *tensorstack.GenericJob) string {
	total := int64(0)
	for spec := range pointers.To(job.Spec.ReplicaSpecs) {
		if count(spec) < 0 {
			return fmt.Sprintf("replicas of type %s must not be negative, and are %d", spec.Type, count(spec))
		}
		total += int64(boundsOf(spec).Most)
	}
	if total <= mostReplicas {
		return ""
	}
	return fmt.Sprintf("replicas of all types, or %s in place of those of its type, must be at most %d together, and are %d",
		muster.MaxReplicasAnnotation, mostReplicas, total)
}

// mostReplicas is how many replicas a job may have. The API refuses larger jobs, and negative numbers, but not jobs
// that were stored before it did.
const mostReplicas = 5000
