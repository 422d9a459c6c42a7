package observe

import (
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/cmd/muster/view"
)

// kindRead describes a kind of objects to read.
type kindRead struct {
	name       string
	list       client.ObjectList
	namespaced bool
	// decides is set if decisions need the complete list; needed if the cluster must serve the kind.
	decides, needed bool
	// only limits the list; nil selects all objects.
	only client.ListOption
	// watched is an empty object of the kind; nil if the kind is never watched.
	watched client.Object
}

// jobLists are the lists of the jobs that users submit and of the objects that queue for them.
type jobLists struct {
	workloads    kueue.WorkloadList
	localQueues  kueue.LocalQueueList
	jobSets      jobset.JobSetList
	genericJobs  tensorstack.GenericJobList
	trainingJobs breezeml.TrainingJobList
	latticeJobs  lattice.LatticeJobList
	vcJobs       volcano.JobList
	jobs         batchv1.JobList
}

// kinds returns all kinds of the lists, each to be read into its list.
func (j *jobLists) kinds() []kindRead { return append(j.queuedKinds(), j.jobKinds()...) }

// queuedKinds returns the kinds that queueing requires.
func (j *jobLists) queuedKinds() []kindRead {
	return []kindRead{
		{name: "workloads", list: &j.workloads, watched: &kueue.Workload{}, namespaced: true, decides: true, needed: true},
		{name: "localqueues", list: &j.localQueues, watched: &kueue.LocalQueue{}, namespaced: true,
			decides: true, needed: true},
	}
}

// jobKinds returns the kinds of jobs that users submit.
func (j *jobLists) jobKinds() []kindRead {
	return []kindRead{
		{name: "jobsets", list: &j.jobSets, watched: &jobset.JobSet{}, namespaced: true},
		{name: "genericjobs", list: &j.genericJobs, watched: &tensorstack.GenericJob{}, namespaced: true},
		{name: "trainingjobs", list: &j.trainingJobs, watched: &breezeml.TrainingJob{}, namespaced: true},
		{name: "latticejobs", list: &j.latticeJobs, watched: &lattice.LatticeJob{}, namespaced: true},
		{name: "vcjobs", list: &j.vcJobs, watched: &volcano.Job{}, namespaced: true},
		{name: "jobs", list: &j.jobs, watched: &batchv1.Job{}, namespaced: true},
	}
}

// put stores the items of the lists in the snapshot.
func (j *jobLists) put(snapshot *view.Snapshot) {
	snapshot.Workloads, snapshot.LocalQueues = j.workloads.Items, j.localQueues.Items
	snapshot.JobSets, snapshot.GenericJobs, snapshot.TrainingJobs = j.jobSets.Items, j.genericJobs.Items,
		j.trainingJobs.Items
	snapshot.LatticeJobs, snapshot.VCJobs, snapshot.Jobs = j.latticeJobs.Items, j.vcJobs.Items, j.jobs.Items
}

// clusterQueueKind describes ClusterQueues, to be read into list.
func clusterQueueKind(list *kueue.ClusterQueueList) kindRead {
	return kindRead{name: "clusterqueues", list: list, watched: &kueue.ClusterQueue{}, decides: true}
}

// clusterQueueKinds describes the ClusterQueues of the scope, to be read into list; none if it has none.
func (s Scope) clusterQueueKinds(list *kueue.ClusterQueueList) []kindRead {
	if !s.ClusterQueues && !s.Limits {
		return nil
	}
	kind := clusterQueueKind(list)
	kind.decides = s.ClusterQueues
	return []kindRead{kind}
}

// isNotServed reports whether err means that the cluster does not serve the kind, also if its CRD was deleted after
// discovery. It is valid for errors of lists only: for a single object NotFound would have another meaning.
func isNotServed(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }
