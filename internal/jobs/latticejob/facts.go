package latticejob

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// related returns the objects that the job refers to: each called service as a Service or as the
// LatticeJob whose task it is, and the RuntimeClass for GPUs.
func related(job *lattice.LatticeJob) []client.Object {
	if hasOutcome(job) {
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
				out = append(out,
					&lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Namespace: callee.Namespace, Name: callee.Name}})
			}
		}
	}
	return out
}

// facts returns the facts with which the job is compiled. Of the related objects only what the job calls is read: a
// user may have many LatticeJobs, and each may be large.
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
			if hasOutcome(o) || hasSchedule(o) {
				continue // its edges are gone, or the edges of its runs, which have other names
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

// compileFacts returns the facts with which the job is compiled.
func (v *view) compileFacts() compile.Facts {
	return v.withQueuedGPUs(v.job, v.seen.Facts.Queued, v.facts(v.job, v.seen.Facts, v.seen.Related))
}

// waitsForVolcano reports whether Volcano is to run VCJobs and its API is not served yet.
func (c controller) waitsForVolcano(facts jobs.Facts) bool {
	return c.settings.External && !facts.Served[volcanoJobs]
}

// volcanoJobs is the resource of VCJobs.
var volcanoJobs = schema.GroupResource{Group: volcano.GroupVersion.Group, Resource: "jobs"}
