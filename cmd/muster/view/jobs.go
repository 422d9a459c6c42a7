package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/genericjob"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
)

// Jobs returns what users submitted: JobSets, GenericJobs, TrainingJobs, LatticeJobs, VCJobs, batch Jobs not owned by
// another job, and the Workloads of jobs of other kinds or of no job. They are sorted by namespace, then by age.
func Jobs(snapshot *Snapshot, now time.Time) []Job {
	found := subjects(snapshot)
	titles, queues := titlesOf(found), snapshot.limitingQueues()
	out := make([]Job, 0, len(found))
	for _, s := range found {
		s.titles = titles
		if s.queue == "" && s.workload == nil && s.startedAt == nil && queuesUnnamed(snapshot, s.meta.Namespace) {
			s.queue = muster.DefaultQueue
		}
		job := s.describe(now)
		queues.addTimes(&job, s.workload, now)
		out = append(out, job)
	}
	slices.SortFunc(out, func(a, b Job) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), a.CreatedAt.Compare(b.CreatedAt.Time),
			strings.Compare(a.Title(), b.Title()))
	})
	return out
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
		job := &snapshot.GenericJobs[i]
		add(newSubject(&job.ObjectMeta, genericjob.Summary(job), owned).of("GenericJob", tensorstack.GroupVersion.Group))
	}
	for i := range snapshot.TrainingJobs {
		job, group := &snapshot.TrainingJobs[i], *snapshot.configuration().TrainingJob.Group
		add(newSubject(&job.ObjectMeta, trainingjob.Summary(job), owned).of("TrainingJob", group))
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
			add(newSubject(&job.ObjectMeta, batchjob.Summary(job), owned).of("Job", batchv1.GroupName))
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
