package latticejob

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// kind is the kind LatticeJob.
var kind = lattice.GroupVersion.WithKind("LatticeJob")

// Settings are the operator's settings for all LatticeJobs.
type Settings struct {
	// External says that Volcano runs VCJobs.
	External bool
	// GPUs says which resources GPUs are requested as; if empty, the nodes' resources decide.
	GPUs compile.GPUs
	// GPUModels maps names of GPU models, in upper case, to values of the product label.
	GPUModels map[string]string
	// NeedMesh and NeedTracing make jobs wait for mesh members and TracingPolicies if the cluster does
	// not serve these kinds.
	NeedMesh, NeedTracing bool
	// SpreadBy is the label over whose values pods are spread; the host name if empty.
	SpreadBy string
	// Cluster holds the values of ${cluster.*}.
	Cluster map[string]string
}

// New returns the LatticeJob API.
func New(settings Settings) jobs.API[*lattice.LatticeJob] {
	c := controller{settings}
	api := jobs.API[*lattice.LatticeJob]{
		Kind:            kind,
		Queue:           jobs.QueueOptional,
		New:             func() *lattice.LatticeJob { return &lattice.LatticeJob{} },
		Owns:            []client.Object{&lattice.LatticeJob{}}, // of a schedule
		AsksKinds:       []schema.GroupResource{compile.ExternalSecrets, compile.MeshMembers, compile.TracingPolicies},
		Delegates:       !settings.External,
		RequeuesChanged: settings.External,
		Matters:         matters,
		Expected:        expected,
		Related:         related,
		AsksNodes:       nodeFeatures,
		PodLabels:       podLabels,
		UnlabelledPods:  unlabelledPods,
		Describe:        c.describe,
		Plan:            c.plan,
	}
	if settings.External {
		// The kind comes with Volcano, which may be installed later.
		api.Optional = []jobs.OptionalKind{{Resource: volcanoJobs, Object: &volcano.Job{}}}
		api.QueueField = func(job *lattice.LatticeJob) string { return job.Spec.Queue }
	} else {
		api.Owns = append(api.Owns, &volcano.Job{})
	}
	return api
}

// podLabels returns the labels of the pods that Volcano creates for the job with the UID.
func podLabels(uid types.UID) map[string]string {
	return map[string]string{muster.JobUIDLabel: string(uid)}
}

// unlabelledPods selects the pods that Volcano creates for a VCJob with the name that was made before
// pods had podLabels.
func unlabelledPods(name string) labels.Selector {
	of, err := labels.NewRequirement(volcano.JobNameKey, selection.Equals, []string{name})
	if err != nil {
		return labels.Nothing() // not a valid label value
	}
	without, err := labels.NewRequirement(muster.JobUIDLabel, selection.DoesNotExist, nil)
	if err != nil {
		return labels.Nothing()
	}
	return labels.NewSelector().Add(*of, *without)
}

// volcanoJobs is the resource of VCJobs.
var volcanoJobs = schema.GroupResource{Group: volcano.GroupVersion.Group, Resource: "jobs"}

// waitsForVolcano reports whether Volcano is to run VCJobs and its API is not served yet.
func (c controller) waitsForVolcano(facts jobs.Facts) bool {
	return c.settings.External && !facts.Served[volcanoJobs]
}

// controller plans LatticeJobs with the operator's settings.
type controller struct{ settings Settings }

// matters reports whether a change of the VCJob may change the status of the LatticeJob, or make it restore its objects.
func matters(before, after client.Object) bool {
	was, isJob := before.(*volcano.Job)
	is, stillJob := after.(*volcano.Job)
	if !isJob || !stillJob {
		return true
	}
	return was.Status.State.Phase != is.Status.State.Phase || was.Status.State.Reason != is.Status.State.Reason ||
		was.Status.State.Message != is.Status.State.Message || restarts(&was.Status) != restarts(&is.Status) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero()
}

// expected reports whether a new VCJob has no status yet: the LatticeJob's status depends on the
// VCJob's alone.
func expected(child client.Object) bool {
	vcjob, is := child.(*volcano.Job)
	return is && vcjob.DeletionTimestamp.IsZero() && vcjob.Status.State.Phase == ""
}

// related returns the objects that the job refers to: each called service as a Service or as the
// LatticeJob whose task it is, and the RuntimeClass for GPUs.
func related(job *lattice.LatticeJob) []client.Object {
	if ended(job) {
		return nil
	}
	var out []client.Object
	if hasGPUs(job) {
		out = append(out, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: compile.NvidiaRuntime}})
	}
	callees := map[client.ObjectKey]bool{}
	for _, key := range compile.ServicesOf(job) {
		out = append(out, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		for i := range key.Name {
			// A DNS label has - only within, so that the name of no job ends with it, and that of no task begins so.
			callee := client.ObjectKey{Namespace: key.Namespace, Name: key.Name[:i]}
			if key.Name[i] == '-' && key.Name[i-1] != '-' && key.Name[i+1] != '-' && !callees[callee] {
				callees[callee] = true
				out = append(out, &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Namespace: callee.Namespace, Name: callee.Name}})
			}
		}
	}
	return out
}

// facts returns the facts with which the job is compiled. Of the related objects only what the job calls is read: a user
// may have many LatticeJobs, and each may be large.
func (c controller) facts(job *lattice.LatticeJob, facts jobs.Facts, related []client.Object) compile.Facts {
	out := compile.Facts{
		Served: facts.Served, NeedMesh: c.settings.NeedMesh, NeedTracing: c.settings.NeedTracing,
		GPUs: c.settings.GPUs, GPUMemoryLabel: facts.NodeFeatures[labelsGPUMemory], GPUModels: c.settings.GPUModels,
		SpreadBy: c.settings.SpreadBy, Cluster: c.settings.Cluster, StrictServiceNames: facts.StrictServiceNames,
		Services: map[compile.ServiceKey][]compile.ServicePort{},
	}
	if out.GPUs == "" && facts.NodeFeatures[sharesGPUs] {
		out.GPUs = compile.SharedGPUs
	}
	called := compile.ServicesOf(job)
	for _, object := range related {
		switch o := object.(type) {
		case *nodev1.RuntimeClass:
			out.NvidiaRuntime = true
		case *corev1.Service:
			out.Services[compile.ServiceKey{Namespace: o.Namespace, Name: o.Name}] = servicePorts(o)
		case *lattice.LatticeJob:
			if ended(o) || hasSchedule(o) {
				continue // its edges are gone, or those of its runs, which have other names
			}
			for _, key := range called {
				task, its := strings.CutPrefix(key.Name, o.Name+"-")
				if _, known := out.Services[key]; known || !its || key.Namespace != o.Namespace {
					continue
				}
				if ports, there := compile.PortsOf(o, task); there {
					out.Services[key] = ports
				}
			}
		}
	}
	return out
}

func servicePorts(service *corev1.Service) []compile.ServicePort {
	var out []compile.ServicePort
	for _, p := range service.Spec.Ports {
		out = append(out, compile.ServicePort{Name: p.Name, Port: p.Port})
	}
	return out
}

// describe returns what a LatticeJob requests of a queue. That is nothing if its VCJob or its runs
// queue, if its queue is Volcano's alone, or before Volcano is installed; if the job was queued before,
// it gives its quota back.
func (c controller) describe(job *lattice.LatticeJob, facts jobs.Facts) jobs.Description {
	switch {
	case hasSchedule(job):
		return jobs.Description{}
	case !c.settings.External:
		return jobs.Description{Paused: true}
	case c.waitsForVolcano(facts) || !isManagedQueue(job, facts.Queues):
		return jobs.Description{Paused: job.Status.Phase != lattice.Running} // a running job keeps its quota
	}
	d := jobs.Description{Queue: job.Spec.Queue, PriorityClass: job.Spec.PriorityClassName, HeldByChild: job.Status.Phase == lattice.Running}
	if job.Status.Phase == lattice.Running && len(facts.Queued) > 0 {
		// A change of the spec is ignored by now, so it must not change either what the quota of the job is for.
		d.PodSets = slices.Clone(facts.Queued)
		return d
	}
	known := c.facts(job, facts, nil)
	known.AnyService = true // the pods' requests do not depend on services
	result, err := compile.Compile(job, c.withQueuedGPUs(job, facts.Queued, known))
	switch {
	case awaitsSharedGPUs(job, err):
		return jobs.Description{Paused: true}
	case err != nil:
		return d // Plan reports the error
	case len(result.Missing) > 0 && job.Status.Phase != lattice.Running:
		return jobs.Description{Paused: true} // no object of it could be created
	}
	for i := range result.VCJob.Spec.Tasks {
		task := &result.VCJob.Spec.Tasks[i]
		if task.Replicas == 0 {
			continue // the task has no pods
		}
		d.PodSets = append(d.PodSets, kueue.PodSet{Name: kueue.PodSetReference(task.Name), Count: task.Replicas, Template: task.Template})
	}
	return d
}

// isManagedQueue reports whether the queue that the job names is one of Muster's.
func isManagedQueue(job *lattice.LatticeJob, queues jobs.QueueFacts) bool {
	name := job.Labels[kueue.QueueLabel]
	if name == "" {
		name = job.Spec.Queue
	}
	return name != "" && queues.Serves(name)
}

func ended(job *lattice.LatticeJob) bool {
	return job.Status.Phase == lattice.Succeeded || job.Status.Phase == lattice.Failed
}
