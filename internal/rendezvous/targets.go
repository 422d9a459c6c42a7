package rendezvous

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// targets are how many pods jobs with rounds are to have now, succeeded pods included: the size of a TrainingJob, and
// the sum over the Jobs of a JobSet. A round waits for a pod that is about to be created, such as the replacement of a
// lost one.
type targets struct {
	// byOwner is what a TrainingJob or a Job contributes, byID the sum by rendezvous ID.
	byOwner map[types.UID]target
	byID    map[string]int
}

type target struct {
	id   string
	pods int
}

func newTargets() targets {
	return targets{byOwner: map[types.UID]target{}, byID: map[string]int{}}
}

// of returns how many pods the rounds with the ID are to have, 0 if that is not known.
func (t *targets) of(id string) int { return t.byID[id] }

// set records that the object is to have that many pods in the rounds with the ID. It returns the IDs of rounds that
// are to have another number of pods than before.
func (t *targets) set(owner types.UID, id string, pods int) (changed []string) {
	is, was := target{id, pods}, t.byOwner[owner]
	if is.pods == 0 {
		is = target{}
	}
	if is == was {
		return nil
	}
	delete(t.byOwner, owner)
	if is.pods > 0 {
		t.byOwner[owner] = is
	}
	for _, add := range []target{{was.id, -was.pods}, is} {
		if add.pods == 0 {
			continue
		}
		changed = append(changed, add.id)
		if t.byID[add.id] += add.pods; t.byID[add.id] == 0 {
			delete(t.byID, add.id)
		}
	}
	return slices.Compact(changed)
}

// podsOfJob returns how many pods the Job is to have now, succeeded pods included.
func podsOfJob(job *batchv1.Job) int {
	failed := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobFailureTarget || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
	if failed || !job.DeletionTimestamp.IsZero() || ptr.Deref(job.Spec.Suspend, false) {
		return 0
	}
	pods := ptr.Deref(job.Spec.Parallelism, 1) + job.Status.Succeeded
	if most := job.Spec.Completions; most != nil {
		pods = min(pods, *most)
	}
	return int(pods)
}
