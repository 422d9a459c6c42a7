package trainingjob

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// batchDelay is how long changes of pods are batched: too short for users to notice.
const batchDelay = 100 * time.Millisecond

// worker is the name of the only pod set, and a part of the names of pods.
const worker = breezeml.WorkerType

// Settings are the settings for TrainingJobs that an administrator can make.
type Settings struct {
	// Group is the API group: breezeml.DefaultGroup, unless the API was installed under another name.
	Group string
	// PendingTimeout is how long pods of a running job may be pending before the job gives up its quota. Cooldown is
	// how long it then waits before it is queued again.
	PendingTimeout, Cooldown time.Duration
}

func (s Settings) kind() schema.GroupVersionKind {
	return breezeml.VersionOf(s.Group).WithKind("TrainingJob")
}

// API returns the TrainingJob API. A TrainingJob that names no queue goes to the queue named default.
func API(s Settings) jobs.API[*breezeml.TrainingJob] {
	return jobs.API[*breezeml.TrainingJob]{
		Kind:  s.kind(),
		Queue: jobs.QueueRequired,
		New:   func() *breezeml.TrainingJob { return &breezeml.TrainingJob{} },
		Owns:  []client.Object{&corev1.Pod{}, &corev1.Service{}},
		Matters: jobs.PodChanges(func(was, is *corev1.Pod) bool {
			return restartsInPlace(was) != restartsInPlace(is)
		}),
		BatchDelay: batchDelay,
		Resizes:    true,
		Gangs:      true,
		PodLabels: func(uid types.UID) map[string]string {
			return map[string]string{muster.JobUIDLabel: string(uid)}
		},
		QueueField:  queueOf,
		AwaitsNodes: func(job *breezeml.TrainingJob) bool { return limitOf(job) > 0 },
		Describe:    describe,
		Plan:        func(seen jobs.Seen[*breezeml.TrainingJob]) jobs.Plan { return plan(s, seen) },
	}
}

// describe returns what a TrainingJob asks for: one pod set of as many workers as it can use, and the minimum that it
// accepts.
func describe(job *breezeml.TrainingJob, facts jobs.Facts) jobs.Description {
	d := jobs.Description{
		Foreign: job.Spec.RunPolicy.ManagedBy != nil && *job.Spec.RunPolicy.ManagedBy != breezeml.ControllerName,
		Queue:   queueOf(job),
		Paused:  suspended(job) || mistakeOf(job) != "" || job.Status.Stage == breezeml.StageRequeueCooldown,
	}
	d.Priority, d.PriorityClass = ptr.To(job.Spec.Priority), ""
	if p := job.Spec.RunPolicy.SchedulingPolicy; p != nil && p.PriorityClass != "" && job.Spec.Priority == 0 {
		d.Priority, d.PriorityClass = nil, p.PriorityClass
	}
	if mistakeOf(job) != "" {
		return d
	}
	size := sizesOf(job)
	// A job of a single size is elastic too: it may be stopped for a higher priority, whatever the preemption policy of
	// its queue.
	podSet := kueue.PodSet{Name: worker, Count: size.most, MinCount: ptr.To(size.least), Template: templateOf(job)}
	metav1.SetMetaDataAnnotation(&podSet.Template.ObjectMeta, muster.MinReplicasAnnotation, strconv.Itoa(int(size.least)))
	metav1.SetMetaDataAnnotation(&podSet.Template.ObjectMeta, muster.MaxReplicasAnnotation, strconv.Itoa(int(size.most)))
	if limit := limitOf(job); job.Status.Stage == breezeml.StageRunning && limit > 0 {
		d.Wanted = max(limit, size.least)
	}
	d.QueuedTime = queuedSince(job)
	agent := latticeOf(job)
	agent.mark(&podSet.Template)
	if _, err := agent.withAgent(job, facts.Agent, templateOf(job), 0); err != nil {
		d.Mistake = ptr.To(jobs.Obstacle(jobs.InvalidJob, noAgent(err)))
	}
	d.PodSets = []kueue.PodSet{podSet}
	if wrong := jobs.RequestTopology(d.PodSets, func(int) jobs.Ranks { return jobs.Ranks{} }); d.Mistake == nil {
		d.Mistake = wrong
	}
	return d
}

// queuedSince returns since when the job is queued, zero if it is queued only now.
func queuedSince(job *breezeml.TrainingJob) time.Time {
	switch s := &job.Status; {
	case s.Stage == breezeml.StageNone:
		return job.CreationTimestamp.Time
	case s.Stage == breezeml.StageWrongConfiguration, isTrue(job, breezeml.JobSuspended), s.QueuedTime == nil:
		return time.Time{} // the next status has the time
	}
	return job.Status.QueuedTime.Time
}

// queueOf returns the queue of the scheduling policy, "" if it names none.
func queueOf(job *breezeml.TrainingJob) string {
	if p := job.Spec.RunPolicy.SchedulingPolicy; p != nil {
		return p.Queue
	}
	return ""
}

// suspended reports whether the user has suspended the job.
func suspended(job *breezeml.TrainingJob) bool { return ptr.Deref(job.Spec.RunPolicy.Suspend, false) }
