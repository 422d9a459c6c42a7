package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// Jobs returns what users submitted: JobSets, GenericJobs, TrainingJobs, LatticeJobs, VCJobs, batch Jobs not owned by
// another job, and the Workloads of jobs of other kinds or of no job. They are sorted by namespace, then by age.
func Jobs(snapshot *Snapshot, now time.Time) []Job {
	found := subjects(snapshot)
	titles := titlesOf(found)
	jobs := make([]Job, 0, len(found))
	for _, s := range found {
		s.titles = titles
		if s.queue == "" && s.workload == nil && s.startedAt == nil && queuesUnnamed(snapshot, s.meta.Namespace) {
			s.queue = muster.DefaultQueue
		}
		jobs = append(jobs, s.describe(now))
	}
	slices.SortFunc(jobs, func(a, b Job) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), a.CreatedAt.Compare(b.CreatedAt.Time),
			strings.Compare(a.Title(), b.Title()))
	})
	return jobs
}

// subjects returns a subject for each job that is not part of another job.
func subjects(snapshot *Snapshot) (found []*subject) {
	owned := snapshot.owners()
	shown := map[types.UID]bool{} // including jobs that are parts of another job
	add := func(s *subject) {
		shown[s.meta.UID] = true
		found = append(found, s)
	}
	for i := range snapshot.JobSets {
		add(jobSetSubject(&snapshot.JobSets[i], owned))
	}
	for i := range snapshot.GenericJobs {
		add(genericJobSubject(&snapshot.GenericJobs[i], owned))
	}
	for i := range snapshot.TrainingJobs {
		add(trainingJobSubject(&snapshot.TrainingJobs[i], *snapshot.configuration().TrainingJob.Group, owned))
	}
	latticeJobs, vcJobs := latticeJobs(snapshot, owned)
	for _, s := range latticeJobs {
		add(s)
	}
	for i := range snapshot.VCJobs {
		shown[snapshot.VCJobs[i].UID] = true
	}
	for _, job := range vcJobs {
		add(vcJobSubject(job, owned))
	}
	for i := range snapshot.Jobs {
		job := &snapshot.Jobs[i]
		shown[job.UID] = true
		if !isPartOfAnother(job, owned) {
			add(batchJobSubject(job, owned))
		}
	}
	for i := range snapshot.Workloads {
		workload := &snapshot.Workloads[i]
		if owner := metav1.GetControllerOfNoCopy(workload); owner == nil || !shown[owner.UID] {
			s := workloadSubject(workload)
			s.deleted = snapshot.Deleted[s.meta.UID]
			found = append(found, s)
		}
	}
	return found
}

// titlesOf returns the full titles of jobs, keyed by the UIDs of the jobs and of their Workloads.
func titlesOf(found []*subject) map[types.UID]string {
	titles := map[types.UID]string{}
	for _, s := range found {
		title := s.meta.Namespace + "/" + strings.ToLower(s.kind) + "/" + s.meta.Name
		titles[s.meta.UID] = title
		if s.workload != nil {
			titles[s.workload.UID] = title
		}
	}
	return titles
}

// queuesUnnamed reports whether jobs of a namespace that name no queue are queued nevertheless: so they are if a user
// created a LocalQueue called default.
func queuesUnnamed(snapshot *Snapshot, namespace string) bool {
	return slices.ContainsFunc(snapshot.LocalQueues, func(lq kueue.LocalQueue) bool {
		_, madeByMuster := lq.Labels[muster.MadeForLabel]
		return lq.Namespace == namespace && lq.Name == muster.DefaultQueue && !madeByMuster
	})
}

// isPartOfAnother reports whether the Job was made for an object of a job API, rather than by a user or a CronJob. A
// controller of another kind counts if it has a Workload: then it is the owner that queues.
func isPartOfAnother(job *batchv1.Job, owned owners) bool {
	owner := metav1.GetControllerOf(job)
	if owner == nil {
		return false
	}
	return strings.HasPrefix(owner.APIVersion, jobset.GroupVersion.Group+"/") || owned.workloads[owner.UID] != nil
}

// subject is what is known of one job before it becomes a Job.
type subject struct {
	meta        *metav1.ObjectMeta
	kind, group string
	workload    *kueue.Workload
	queue       string
	pods        podCounts
	// sizes is the range of sizes of an elastic job, the zero value for other jobs.
	sizes    sizes
	requests corev1.ResourceList
	restarts int32
	// suspended is the job's own suspend field: whether a user or its queue set it follows from the Workload.
	suspended bool
	// blocked says what keeps the job from being queued, "" if nothing does.
	blocked string
	// held says how a user suspended the job, "" if nobody did.
	held string
	// stopped says why the job, though allowed to run, has no pods: a user set it so. "" if it runs pods.
	stopped string
	// sizeFromSpec is set if the job's own spec says how many pods it runs at present, limited by what it was admitted
	// with.
	sizeFromSpec bool
	// parts are the parts of a job that may be enlarged after admission; none for other jobs.
	parts []part
	// given is how many pods the job was admitted with, 0 if it was not.
	given int32
	// ended is set when the job is over.
	ended *ending
	// startedAt is when its first pods were created, used if no Workload knows better.
	startedAt *metav1.Time
	// partial says that fewer pods were admitted than wanted, or that pods were restarted; "" if neither.
	partial string
	// keepsSize says that the queue does not resize the admitted elastic pod set.
	keepsSize bool
	// makers is Makers of the Job.
	makers []types.UID
	// titles are the full titles of all jobs, keyed by the UIDs of the jobs and of their Workloads.
	titles map[types.UID]string
	// foreign jobs are started by a controller whose objects are not read here.
	foreign bool
	// deleted is set if the job is known to be gone, though its Workload is not.
	deleted bool
}

// part is a replicated job or a task: its pod set, and the number of pods in its spec.
type part struct {
	name kueue.PodSetReference
	pods int32
}

type ending struct {
	state           State
	reason, message string
	at              metav1.Time
}

type podCounts struct{ active, ready, succeeded, asked int32 }

// up counts the pods that are ready or have succeeded, at most p.asked: a Job may have more completions than parallel
// pods.
func (p podCounts) up() int32 { return min(p.ready+p.succeeded, p.asked) }

func jobSetSubject(js *jobset.JobSet, owned owners) *subject {
	s := &subject{
		meta: &js.ObjectMeta, kind: "JobSet", group: jobset.GroupVersion.Group,
		workload:     owned.workloads[js.UID],
		queue:        cmp.Or(js.Labels[kueue.QueueLabel], js.Annotations[kueue.QueueAnnotation]),
		requests:     corev1.ResourceList{},
		restarts:     js.Status.Restarts,
		suspended:    js.Spec.Suspend != nil && *js.Spec.Suspend,
		sizeFromSpec: true,
	}
	for i := range js.Spec.ReplicatedJobs {
		replicated := &js.Spec.ReplicatedJobs[i]
		count := replicated.Replicas * podsAtOnce(&replicated.Template.Spec)
		s.parts = append(s.parts, part{kueue.PodSetReference(replicated.Name), count})
		s.pods.asked += count
		addTimes(s.requests, podRequests(&replicated.Template.Spec.Template), count)
	}
	for _, job := range owned.jobs[js.UID] {
		s.addPods(job)
		s.makers = append(s.makers, job.UID)
	}
	s.ended = endOf(js.Status.Conditions, string(jobset.JobSetCompleted), string(jobset.JobSetFailed))
	if c := meta.FindStatusCondition(js.Status.Conditions, muster.CannotStartCondition); c != nil &&
		c.Status == metav1.ConditionTrue {
		s.blocked = c.Message
	}
	var alone int32
	for i := range js.Status.ReplicatedJobsStatus {
		for _, restarts := range js.Status.ReplicatedJobsStatus[i].JobRestarts {
			alone += restarts
		}
	}
	if alone > 0 {
		s.partial = "single Jobs restarted " + times(alone)
	}
	s.noteManager(js.Spec.ManagedBy, jobset.JobSetControllerName)
	return s
}

func batchJobSubject(job *batchv1.Job, owned owners) *subject {
	s := &subject{
		meta: &job.ObjectMeta, kind: "Job", group: batchv1.GroupName,
		workload:     owned.workloads[job.UID],
		queue:        cmp.Or(job.Labels[kueue.QueueLabel], job.Annotations[kueue.QueueAnnotation]),
		pods:         podCounts{asked: podsAtOnce(&job.Spec)},
		requests:     corev1.ResourceList{},
		suspended:    job.Spec.Suspend != nil && *job.Spec.Suspend,
		sizeFromSpec: true,
	}
	if parallelism := job.Spec.Parallelism; parallelism != nil && *parallelism == 0 {
		s.stopped = "spec.parallelism is 0: it runs no pods"
	}
	addTimes(s.requests, podRequests(&job.Spec.Template), s.pods.asked)
	s.addPods(job)
	conditions := make([]metav1.Condition, 0, len(job.Status.Conditions))
	for _, c := range job.Status.Conditions {
		conditions = append(conditions, metav1.Condition{
			Type: string(c.Type), Status: metav1.ConditionStatus(c.Status),
			Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	s.ended = endOf(conditions, string(batchv1.JobComplete), string(batchv1.JobFailed))
	s.noteManager(job.Spec.ManagedBy, batchv1.JobControllerName)
	return s
}

// noteManager sets s.blocked if spec.managedBy names another controller than ours, unless the job already runs. Muster
// makes no Workload for a job of another controller.
func (s *subject) noteManager(managedBy *string, ours string) {
	if managedBy != nil && *managedBy != ours && s.workload == nil && s.pods.active == 0 && s.blocked == "" {
		s.blocked = fmt.Sprintf("managedBy is %s: that controller runs the job, and Muster leaves it alone", *managedBy)
	}
}

// workloadSubject returns the subject of a job known only by its Workload, under the name of the Workload's owner if it
// has one.
func workloadSubject(workload *kueue.Workload) *subject {
	s := &subject{
		meta: &workload.ObjectMeta, kind: "Workload", group: kueue.GroupVersion.Group,
		workload: workload,
		queue:    string(workload.Spec.QueueName),
		requests: corev1.ResourceList{},
		foreign:  true,
	}
	if owner := metav1.GetControllerOf(workload); owner != nil {
		group, _, versioned := strings.Cut(owner.APIVersion, "/")
		if !versioned {
			group = ""
		}
		meta := workload.ObjectMeta.DeepCopy()
		meta.Name, meta.UID = owner.Name, owner.UID
		s.meta, s.kind, s.group = meta, owner.Kind, group
		if group == volcano.GroupVersion.Group && owner.Kind == "Job" {
			s.kind = vcJobKind // it was deleted before its Workload, or may not be listed
		}
	}
	for i := range workload.Spec.PodSets {
		podSet := &workload.Spec.PodSets[i]
		s.pods.asked += podSet.Count
		addTimes(s.requests, podRequests(&podSet.Template), podSet.Count)
	}
	return s
}

// podsAtOnce returns how many pods a Job runs at the same time.
func podsAtOnce(spec *batchv1.JobSpec) int32 {
	count := int32(1)
	if spec.Parallelism != nil {
		count = *spec.Parallelism
	}
	if spec.Completions != nil {
		count = min(count, *spec.Completions)
	}
	return count
}

func (s *subject) addPods(job *batchv1.Job) {
	s.pods.active += job.Status.Active
	s.pods.succeeded += job.Status.Succeeded
	if job.Status.Ready != nil {
		s.pods.ready += *job.Status.Ready
	}
	if started := job.Status.StartTime; started != nil && (s.startedAt == nil || started.Before(s.startedAt)) {
		s.startedAt = started
	}
}
