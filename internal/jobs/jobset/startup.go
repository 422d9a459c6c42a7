package jobset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// dependenciesMet reports whether every replicated job that rj depends on has reached the required state. Until then,
// no Jobs of rj are created.
func (v *view) dependenciesMet(rj *jobset.ReplicatedJob) bool {
	for _, dependency := range rj.DependsOn {
		replicas := v.replicas(dependency.Name)
		c := v.counts(dependency.Name)
		switch dependency.Status {
		case jobset.DependencyComplete:
			if c.Succeeded < replicas {
				return false
			}
		case jobset.DependencyReady:
			if c.Ready+c.Succeeded+c.Failed < replicas {
				return false
			}
		}
	}
	return true
}

// hasStarted reports whether every Job of the replicated job was ready, or has ended.
func (v *view) hasStarted(rj *jobset.ReplicatedJob) bool {
	c := v.counts(rj.Name)
	return c.Ready+c.Succeeded+c.Failed >= rj.Replicas
}

// waitsInOrder reports whether the replicated jobs after rj must wait for it to start, and if so says it in the status.
// Once all have started, the status says so until they start anew, after a restart or an eviction: a Job that has lost
// a pod, or is about to fail, is no new startup.
func (r *reporter) waitsInOrder(rj *jobset.ReplicatedJob) bool {
	if !inOrder(r.js) || r.held() || r.hasStarted(rj) {
		return false
	}
	if meta.IsStatusConditionTrue(r.js.Status.Conditions, string(jobset.JobSetStartupPolicyCompleted)) &&
		slices.ContainsFunc(r.children.active, isRunning) {
		return true
	}
	r.setCondition(jobset.JobSetStartupPolicyInProgress, metav1.ConditionTrue,
		jobset.InOrderStartupPolicyInProgressReason, jobset.InOrderStartupPolicyInProgressMessage, corev1.EventTypeNormal)
	r.endCondition(jobset.JobSetStartupPolicyCompleted)
	return true
}

// endStartup says in the status that all replicated jobs have started in order.
func (r *reporter) endStartup() {
	if !inOrder(r.js) || r.held() {
		return
	}
	r.setCondition(jobset.JobSetStartupPolicyCompleted, metav1.ConditionTrue,
		jobset.InOrderStartupPolicyCompletedReason, jobset.InOrderStartupPolicyCompletedMessage, corev1.EventTypeNormal)
	r.endCondition(jobset.JobSetStartupPolicyInProgress)
}

// endCondition sets a condition of the startup policy to False because the opposite one has become True. Reason and
// message stay unchanged, as in the JobSet controller.
func (r *reporter) endCondition(kind jobset.JobSetConditionType) {
	for c := range pointers.To(r.js.Status.Conditions) {
		if c.Type == string(kind) && c.Status == metav1.ConditionTrue {
			c.Status = metav1.ConditionFalse
			c.LastTransitionTime = metav1.NewTime(r.seen.Now)
		}
	}
}

func inOrder(js *jobset.JobSet) bool {
	return js.Spec.StartupPolicy != nil && js.Spec.StartupPolicy.StartupPolicyOrder == jobset.InOrder
}

func (v *view) replicas(name string) int32 {
	for _, rj := range v.js.Spec.ReplicatedJobs {
		if rj.Name == name {
			return rj.Replicas
		}
	}
	return 0
}

// readiness reports whether the pods of all replicated jobs that may start are ready, and, if not, which of the unready
// ones that had to wait for earlier ones began last. Pods of a replicated job that still waits do not exist yet, and
// are not missing.
func (v *view) readiness() (ready bool, last *jobs.Stage) {
	ready = true
	for i := range v.js.Spec.ReplicatedJobs {
		rj := &v.js.Spec.ReplicatedJobs[i]
		if i > 0 && inOrder(v.js) && !v.hasStarted(&v.js.Spec.ReplicatedJobs[i-1]) {
			break
		}
		if !v.dependenciesMet(rj) || v.isEnoughReady(rj) {
			continue
		}
		ready = false
		if i > 0 && inOrder(v.js) || len(rj.DependsOn) > 0 {
			last = jobs.LastStage(last, &jobs.Stage{Name: rj.Name, Since: v.startOf(rj)})
		}
	}
	return ready, last
}

// startOf returns when the first Job of the replicated job was started, or started again after an eviction; zero if
// that is not known yet.
func (v *view) startOf(rj *jobset.ReplicatedJob) (first time.Time) {
	for _, job := range v.children.current() {
		if at := job.Status.StartTime; isOf(job, rj.Name) && at != nil {
			first = replicas.Earlier(first, at.Time)
		}
	}
	return first
}

// allReady reports whether every Job of the spec is ready or has succeeded.
func (v *view) allReady() bool {
	for _, rj := range v.js.Spec.ReplicatedJobs {
		if c := v.counts(rj.Name); c.Ready+c.Succeeded < rj.Replicas {
			return false
		}
	}
	return true
}

// isEnoughReady reports whether every Job of the replicated job has succeeded or has all pods ready that it still runs.
// For an elastic Job, the minimum of pods is enough, so that growing does not make it unready.
func (v *view) isEnoughReady(rj *jobset.ReplicatedJob) bool {
	if c := v.counts(rj.Name); c.Ready+c.Succeeded >= rj.Replicas || v.readyJobs(rj)+c.Succeeded >= rj.Replicas {
		return true
	}
	b := boundsOf(v.js, rj)
	return b.Elastic && v.readyPods(rj) >= b.Least
}

// readyJobs counts the Jobs of the replicated job whose pods are all ready or have succeeded, or, if some indexes have
// finally failed, whose remaining pods are all ready.
func (v *view) readyJobs(rj *jobset.ReplicatedJob) int32 {
	var n int32
	for _, job := range v.children.active {
		if isOf(job, rj.Name) &&
			(isReady(job) || isRunning(job) && ptr.Deref(job.Status.Ready, 0) >= jobs.PodsLeft(job)) {
			n++
		}
	}
	return n
}

// readyPods counts the pods of the replicated job's running Jobs that are ready or have succeeded.
func (v *view) readyPods(rj *jobset.ReplicatedJob) int32 {
	var pods int32
	for _, job := range v.children.active {
		if isOf(job, rj.Name) {
			pods += ptr.Deref(job.Status.Ready, 0) + job.Status.Succeeded
		}
	}
	return pods
}
