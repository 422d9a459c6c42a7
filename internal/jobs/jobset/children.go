package jobset

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// view is what a plan is made from. Policies read it; the status of js is brought up to date by reporter, and children
// are sorted anew when Jobs are restarted.
type view struct {
	seen jobs.Seen[*jobset.JobSet]
	// js is a copy of the JobSet whose status is brought up to date.
	js       *jobset.JobSet
	children children
}

// children holds the Jobs of a JobSet by state, each list sorted by name.
type children struct {
	// previous holds the Jobs of earlier attempts; active, succeeded and failed hold the Jobs of the current attempt.
	previous                  []*batchv1.Job
	active, succeeded, failed []*batchv1.Job
	// byName holds all of them by name.
	byName map[string]*batchv1.Job
}

// doneBefore reports whether the Job, of a JobSet that restarts as a whole, is being deleted because some of its pods
// have succeeded. Its success counts no more: a new Job takes its place.
func doneBefore(job *batchv1.Job) bool { return !job.DeletionTimestamp.IsZero() && hasDonePods(job) }

// hasDonePods reports whether pods of the Job have succeeded.
func hasDonePods(job *batchv1.Job) bool {
	uncounted := job.Status.UncountedTerminatedPods
	return job.Status.Succeeded > 0 || is(job, batchv1.JobComplete) || uncounted != nil && len(uncounted.Succeeded) > 0
}

// splitJobName returns the replicated job and the index in the name of a Job; ok is false if no Job of the JobSet can
// have the name.
func splitJobName(js *jobset.JobSet, name string) (replicatedJob string, index int32, ok bool) {
	name, ok = strings.CutPrefix(name, js.Name+"-")
	at := strings.LastIndexByte(name, '-')
	if !ok || at < 0 {
		return "", 0, false
	}
	text := name[at+1:]
	n, err := strconv.ParseUint(text, 10, 31)
	return name[:at], int32(n), err == nil && (text == "0" || text[0] != '0')
}

// sortChildren sorts the JobSet's Jobs into lists by state. Jobs that it controls and would not create, or that a user
// has created, are none of its own: it has no quota for them, and a user has set their owner reference.
func sortChildren(list []*batchv1.Job, js *jobset.JobSet) children {
	sortByName(list)
	single, whole := singleRestarts(js), jobs.RestartsWhole(js)
	c := children{byName: make(map[string]*batchv1.Job, len(list))}
	replicas := make(map[string]int32, len(js.Spec.ReplicatedJobs))
	for rj := range pointers.To(js.Spec.ReplicatedJobs) {
		replicas[rj.Name] = rj.Replicas
	}
	for _, job := range list {
		if name, index, ok := splitJobName(js, job.Name); !ok || index >= replicas[name] || jobs.IsNobodys(job) {
			continue
		}
		c.byName[job.Name] = job
		switch {
		case outdated(job, js.Status.Restarts, single[job.Name]), whole && doneBefore(job) && !is(job, batchv1.JobFailed):
			c.previous = append(c.previous, job)
		case is(job, batchv1.JobComplete):
			c.succeeded = append(c.succeeded, job)
		case is(job, batchv1.JobFailed):
			c.failed = append(c.failed, job)
		default:
			c.active = append(c.active, job)
		}
	}
	return c
}

func sortByName(list []*batchv1.Job) {
	slices.SortFunc(list, func(a, b *batchv1.Job) int { return cmp.Compare(a.Name, b.Name) })
}

// outdated reports whether the Job belongs to an earlier attempt. A Job whose labels were tampered with, so that the
// attempt is unknown, counts as current until it is deleted.
func outdated(job *batchv1.Job, restarts, single int32) bool {
	attempt, ok := attemptOf(job, jobset.RestartAttemptKey)
	alone, known := attemptOf(job, jobset.JobRestartAttemptKey)
	if !ok || !known && job.Labels[jobset.JobRestartAttemptKey] != "" {
		return !job.DeletionTimestamp.IsZero()
	}
	return attempt < restarts || alone < single
}

// attemptOf returns the number in a label of the Job, and false if there is none.
func attemptOf(job *batchv1.Job, key string) (int32, bool) {
	text := job.Labels[key]
	if text == "" {
		return 0, false // without the allocation of an error, which matters for thousands of Jobs
	}
	attempt, err := strconv.ParseInt(text, 10, 32)
	return int32(attempt), err == nil
}

// singleRestarts returns how often each Job was restarted alone, by its name. Jobs that never were are omitted.
func singleRestarts(js *jobset.JobSet) map[string]int32 {
	var out map[string]int32
	for _, status := range js.Status.ReplicatedJobsStatus {
		for index, count := range status.JobRestarts {
			if count == 0 {
				continue
			}
			if out == nil {
				out = map[string]int32{}
			}
			out[jobName(js, status.Name, int32(index))] = count
		}
	}
	return out
}

// singleRestartsOf returns how often the Job of this index was restarted alone.
func singleRestartsOf(js *jobset.JobSet, replicatedJob string, index int32) int32 {
	for entry := range pointers.To(js.Status.ReplicatedJobsStatus) {
		if entry.Name == replicatedJob && int(index) < len(entry.JobRestarts) {
			return entry.JobRestarts[index]
		}
	}
	return 0
}

// current returns the Jobs of the current attempt.
func (c children) current() []*batchv1.Job {
	return slices.Concat(c.active, c.succeeded, c.failed)
}

func (c children) all() []*batchv1.Job { return slices.Concat(c.previous, c.current()) }

// without returns the children with the restarted Jobs moved to previous.
func (c children) without(restarted []*batchv1.Job) children {
	gone := make(map[*batchv1.Job]bool, len(restarted))
	for _, job := range restarted {
		gone[job] = true
	}
	left := func(list []*batchv1.Job) []*batchv1.Job {
		return slices.DeleteFunc(slices.Clone(list), func(job *batchv1.Job) bool { return gone[job] })
	}
	previous := slices.Concat(c.previous, restarted)
	sortByName(previous)
	return children{previous: previous, active: left(c.active), succeeded: left(c.succeeded), failed: left(c.failed),
		byName: c.byName}
}

// isOutdated reports whether the Job belongs to an earlier attempt.
func (c children) isOutdated(job *batchv1.Job) bool {
	at, found := slices.BinarySearchFunc(c.previous, job.Name,
		func(j *batchv1.Job, name string) int { return cmp.Compare(j.Name, name) })
	return found && c.previous[at] == job
}

// currentJob returns the Job of this name if it belongs to the current attempt, else nil.
func (c children) currentJob(name string) *batchv1.Job {
	if job := c.byName[name]; job != nil && !c.isOutdated(job) {
		return job
	}
	return nil
}

// activeJob returns the Job of this name if it belongs to the current attempt and has not ended, else nil.
func (c children) activeJob(name string) *batchv1.Job {
	if job := c.currentJob(name); job != nil && !jobs.HasEnded(job) {
		return job
	}
	return nil
}

func is(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return jobs.TrueCondition(job, kind) != nil
}

// isOf reports whether the Job is one of the replicated Job's.
func isOf(job *batchv1.Job, replicatedJob string) bool {
	return job.Labels[jobset.ReplicatedJobNameKey] == replicatedJob
}

func suspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }

func isRunning(job *batchv1.Job) bool { return !suspended(job) }

// isReady reports whether all pods of an unfinished Job are ready or have succeeded.
func isReady(job *batchv1.Job) bool {
	return !jobs.HasEnded(job) && jobs.ReadyOrSucceeded(job) >= jobs.PodsAtATime(&job.Spec)
}

// kind is the GroupVersionKind of JobSets.
var kind = jobset.GroupVersion.WithKind("JobSet")

// pollInterval is how long it takes at most to notice changes that no watch reports.
const pollInterval = 10 * time.Second

// held reports whether no pods may run: because the queue says so, or, for a JobSet without a queue, its user.
func (v *view) held() bool {
	if v.seen.Admission.Grant == jobs.Unqueued {
		return ptr.Deref(v.js.Spec.Suspend, false)
	}
	return !v.seen.Admission.MayRun()
}

// restartsWhole reports whether a JobSet in a queue runs all its pods again after it was stopped.
func (v *view) restartsWhole() bool {
	return v.seen.Admission.Grant != jobs.Unqueued && !v.seen.MustGoOn && jobs.RestartsWhole(v.js)
}

// jobName returns the name of a Job of the JobSet.
func jobName(js *jobset.JobSet, replicatedJob string, index int32) string {
	return js.Name + "-" + replicatedJob + "-" + decimal(index)
}

// subdomain returns the name of the headless Service, which is the DNS subdomain of the pods.
func subdomain(js *jobset.JobSet) string {
	return cmp.Or(ptr.Deref(js.Spec.Network, jobset.Network{}).Subdomain, js.Name)
}

func dnsHostnames(js *jobset.JobSet) bool {
	return js.Spec.Network == nil || ptr.Deref(js.Spec.Network.EnableDNSHostnames, true)
}

func decimal(n int32) string { return strconv.FormatInt(int64(n), 10) }
