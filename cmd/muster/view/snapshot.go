package view

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	config "github.com/musterhq/muster/api/config/v1alpha1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	defaults "github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/podproblem"
	"github.com/musterhq/muster/internal/replicas"
)

// Snapshot is what was read from the API server at one time. A kind that the cluster does not serve is empty. The
// functions of this package keep pointers into it; nobody may modify it afterwards.
type Snapshot struct {
	Workloads     []kueue.Workload
	ClusterQueues []kueue.ClusterQueue
	LocalQueues   []kueue.LocalQueue
	JobSets       []jobset.JobSet
	GenericJobs   []tensorstack.GenericJob
	TrainingJobs  []breezeml.TrainingJob
	LatticeJobs   []lattice.LatticeJob
	VCJobs        []volcano.Job
	Jobs          []batchv1.Job
	// The following are read only to explain one job.
	ResourceFlavors []kueue.ResourceFlavor
	Cohorts         []kueue.Cohort
	AdmissionChecks []kueue.AdmissionCheck
	Namespaces      []corev1.Namespace
	LimitRanges     []corev1.LimitRange
	RuntimeClasses  []nodev1.RuntimeClass
	// Topologies, Nodes, and the Bound pods (all scheduled pods that have not finished) are read only if a flavor is
	// placed on nodes.
	Topologies []kueue.Topology
	Nodes      []corev1.Node
	Bound      []corev1.Pod
	// Configuration is the operator's configuration, with all defaults. If it is not known it is the default one, and
	// Assumed says why.
	Configuration *config.Configuration
	Assumed       string
	// Unseen are the kinds, as resource names such as "namespaces", that the reader may not list completely.
	Unseen []string
	// Unreadable are the jobs that cannot be decoded: they are in none of the lists.
	Unreadable []Unreadable
	// Deleted are the UIDs of jobs that were there before and are not any more, though their Workloads still are.
	Deleted map[types.UID]bool
	// Pods are the pods of the one job that is explained; nil for lists of jobs.
	Pods []corev1.Pod
	// Claims are the claims that pods without a node mount.
	Claims podproblem.Claims
	// Mounts says which volumes of the pods could not be mounted, and why.
	Mounts podproblem.Mounts
	// Warnings are the Warning events of the one job that is explained.
	Warnings []corev1.Event
}

// Unreadable is a job that its Go type cannot decode, for instance if another program installed the CRD of its kind.
type Unreadable struct {
	Resource        schema.GroupResource
	Namespace, Name string
	Why             error
}

// JobUIDs returns the UIDs of all objects of job APIs.
func (s *Snapshot) JobUIDs() map[types.UID]bool {
	uids := map[types.UID]bool{}
	addUIDs(uids, s.JobSets)
	addUIDs(uids, s.GenericJobs)
	addUIDs(uids, s.TrainingJobs)
	addUIDs(uids, s.LatticeJobs)
	addUIDs(uids, s.VCJobs)
	addUIDs(uids, s.Jobs)
	return uids
}

func addUIDs[T any, P interface {
	*T
	metav1.Object
}](uids map[types.UID]bool, list []T) {
	for i := range list {
		uids[P(&list[i]).GetUID()] = true
	}
}

// hidesDecisions reports whether the reader may read too little to know how the operator decides.
func (s *Snapshot) hidesDecisions() bool {
	return slices.ContainsFunc(s.Unseen, func(kind string) bool {
		switch kind {
		case "limitranges", "runtimeclasses", "jobsets", "genericjobs", "trainingjobs", "latticejobs", "vcjobs", "jobs":
			return false // without them only an amount or a name may be missing
		case "topologies", "nodes", "pods":
			return s.Places()
		}
		return true
	})
}

// configuration returns the operator's configuration, or the default one if it was not read.
func (s *Snapshot) configuration() *config.Configuration {
	if s.Configuration == nil {
		return defaults.Default()
	}
	return s.Configuration
}

// Places reports whether a flavor has its pods placed on nodes.
func (s *Snapshot) Places() bool {
	return slices.ContainsFunc(s.ResourceFlavors, func(f kueue.ResourceFlavor) bool { return f.Spec.TopologyName != nil })
}

// lacksNode reports whether the node is known not to exist.
func (s *Snapshot) lacksNode(name string) bool {
	return name != "" && len(s.Nodes) > 0 && !slices.Contains(s.Unseen, "nodes") &&
		!slices.ContainsFunc(s.Nodes, func(node corev1.Node) bool { return node.Name == name })
}

// SimulatedLabel marks nodes of `muster up` whose pods are simulated and thus have no logs.
const SimulatedLabel = "muster.dev/simulated"

// simulatesPods reports whether all pods of the explained job that have a node are known to be simulated.
func (s *Snapshot) simulatesPods() bool {
	simulated := map[string]bool{}
	for i := range s.Nodes {
		if node := &s.Nodes[i]; node.Labels[SimulatedLabel] == "true" {
			simulated[node.Name] = true
		}
	}
	some := false
	for i := range s.Pods {
		switch node := s.Pods[i].Spec.NodeName; {
		case simulated[node]:
			some = true
		case node != "":
			return false
		}
	}
	return some
}

// startedNothing reports whether the explained job has pods and none of them ever started a container, init containers
// aside: the logs of init containers are not read first.
func (s *Snapshot) startedNothing() bool {
	return len(s.Pods) > 0 && !slices.ContainsFunc(s.Pods, func(pod corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
			return c.State.Running != nil || hasRun(c.State.Terminated) || hasRun(c.LastTerminationState.Terminated)
		})
	})
}

// hasRun reports whether a container that has ended had started. If not, the runtime says that it started in 1970, and
// the kubelet, if it never knew of the container, nothing.
func hasRun(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && ended.StartedAt.Unix() > 0 && replicas.WhyNotStarted(ended) == ""
}

// clusterQueue returns the ClusterQueue of the name, nil if there is none.
func (s *Snapshot) clusterQueue(name string) *kueue.ClusterQueue {
	for i := range s.ClusterQueues {
		if s.ClusterQueues[i].Name == name {
			return &s.ClusterQueues[i]
		}
	}
	return nil
}

// watched returns the objects that decisions depend on.
func (s *Snapshot) watched() []client.Object {
	var objects []client.Object
	objects = appendObjects(objects, s.Namespaces)
	objects = appendObjects(objects, s.LimitRanges)
	objects = appendObjects(objects, s.RuntimeClasses)
	objects = appendObjects(objects, s.AdmissionChecks)
	objects = appendObjects(objects, s.Topologies)
	objects = appendObjects(objects, s.Nodes)
	objects = appendObjects(objects, s.Bound)
	objects = appendObjects(objects, s.ResourceFlavors)
	objects = appendObjects(objects, s.Cohorts)
	objects = appendObjects(objects, s.ClusterQueues)
	objects = appendObjects(objects, s.LocalQueues)
	objects = appendObjects(objects, s.Workloads)
	return objects
}

// appendObjects appends pointers to the items of a list.
func appendObjects[T any, P interface {
	*T
	client.Object
}](objects []client.Object, items []T) []client.Object {
	for i := range items {
		objects = append(objects, P(&items[i]))
	}
	return objects
}

// owners indexes objects by the UID of the owner that controls them: an object that only points at a job is not the
// job's.
type owners struct {
	workloads map[types.UID]*kueue.Workload
	jobs      map[types.UID][]*batchv1.Job
}

func (s *Snapshot) owners() owners {
	o := owners{
		workloads: make(map[types.UID]*kueue.Workload, len(s.Workloads)),
		jobs:      map[types.UID][]*batchv1.Job{},
	}
	for i := range s.Workloads {
		workload := &s.Workloads[i]
		if owner := metav1.GetControllerOfNoCopy(workload); owner != nil {
			// A job that is queued again with a new Workload keeps the finished one for a while.
			if known := o.workloads[owner.UID]; known == nil || newer(workload, known) {
				o.workloads[owner.UID] = workload
			}
		}
	}
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if owner := metav1.GetControllerOf(job); owner != nil {
			o.jobs[owner.UID] = append(o.jobs[owner.UID], job)
		}
	}
	return o
}

func newer(a, b *kueue.Workload) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name > b.Name
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}
