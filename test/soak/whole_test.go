package soak

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// A job that is of no use in part (muster.RestartWholeAnnotation) runs all of its pods again after an eviction. So what
// counts as done of it was done since its last admission, and while it waits, it waits for all of its pods.

// changeWhole has a user change the annotation. What is demanded of such a job then depends on when that was.
func (r *round) changeWhole(j *job) {
	if j.Resource != jobs && j.Resource != jobSets {
		return
	}
	value := one(r, "true", "false")
	j.JobAnnotations[muster.RestartWholeAnnotation] = ""
	r.patch(fmt.Sprintf("restarts %s as a whole: %s", j.Name, value), j.object,
		map[string]any{"/metadata/annotations/muster.dev~1restart-whole": value})
}

// wholes returns the names of the jobs that restart as a whole. Of others the annotation has no effect.
func (r *round) wholes() map[string]bool {
	out := map[string]bool{}
	for _, j := range r.jobs {
		out[j.Name] = j.JobAnnotations[muster.RestartWholeAnnotation] == "true" && j.Completions == j.Pods
	}
	return out
}

func (r *round) wholeComplaints(workloads []kueue.Workload) (out []complaint) {
	wholes, succeeded, asked := r.wholes(), r.succeededPods(), r.askedPods()
	children := r.list(&batchv1.JobList{}).(*batchv1.JobList).Items
	for i := range workloads {
		o := &workloads[i]
		name := jobOf(o)
		since := workload.TrueSince(o, kueue.WorkloadAdmitted)
		if !wholes[name] || workload.IsFinished(o) && since.IsZero() {
			continue
		}
		for k := range children {
			job := &children[k]
			if now := succeeded.after(job, since); jobOf(job) == name && job.Status.Succeeded > now {
				out = append(out, complaint{name,
					fmt.Sprintf("%d pods of Job %s count as done, and %d succeeded since it was admitted",
						job.Status.Succeeded, job.Name, now)})
			}
		}
		if pods := podsWaitedFor(o); o.Status.Admission == nil && !workload.IsFinished(o) && pods != asked[name] {
			out = append(out, complaint{name, fmt.Sprintf("waits for %d pods, and asks for %d", pods, asked[name])})
		}
	}
	return out
}

// podsWaitedFor returns for how many pods a Workload queues.
func podsWaitedFor(o *kueue.Workload) (pods int32) {
	for i := range o.Spec.PodSets {
		pods += o.Spec.PodSets[i].Count - workload.Reclaimed(o, &o.Spec.PodSets[i])
	}
	return pods
}

// askedPods returns how many pods at a time batch Jobs and JobSets ask for, by name. While a Job waits, that is what
// its user asked for.
func (r *round) askedPods() map[string]int32 {
	out := map[string]int32{}
	for _, job := range r.list(&batchv1.JobList{}).(*batchv1.JobList).Items {
		out[job.Name] = ptr.Deref(job.Spec.Parallelism, 1)
	}
	for _, set := range r.list(&jobset.JobSetList{}).(*jobset.JobSetList).Items {
		for _, part := range set.Spec.ReplicatedJobs {
			out[set.Name] += part.Replicas * ptr.Deref(part.Template.Spec.Parallelism, 1)
		}
	}
	return out
}

// creations are the times at which the succeeded pods of Jobs were created, by the UIDs of the Job and the pod.
type creations map[types.UID]map[types.UID]time.Time

// succeededPods are those that the journal knows of: the pods may have been deleted.
func (r *round) succeededPods() creations {
	out := creations{}
	for _, e := range r.since(time.Time{}) {
		pod, is := e.object.(*corev1.Pod)
		if !is || pod.Status.Phase != corev1.PodSucceeded {
			continue
		}
		if owner := metav1.GetControllerOf(pod); owner != nil {
			if out[owner.UID] == nil {
				out[owner.UID] = map[types.UID]time.Time{}
			}
			out[owner.UID][pod.UID] = pod.CreationTimestamp.Time
		}
	}
	return out
}

// after returns how many succeeded pods of the Job were created then or later, none for the zero time.
func (c creations) after(job *batchv1.Job, then time.Time) (count int32) {
	for _, created := range c[job.UID] {
		if !then.IsZero() && !created.Before(then) {
			count++
		}
	}
	return count
}
