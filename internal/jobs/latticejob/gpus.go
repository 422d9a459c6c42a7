package latticejob

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
	"github.com/musterhq/muster/internal/podspec"
)

// gpusAnnotation, on a VCJob with GPUs, says how it requests them: one of the values below.
const gpusAnnotation = "lattice.dev/gpus"

const (
	gpuShares           = "vgpu"
	wholeGPUs           = "whole"
	wholeGPUsWithMemory = "whole with memory"
)

// gpuRecheckInterval is how often a waiting job with GPUs checks for other GPU resources: no event
// reports that nodes begin to offer them.
const gpuRecheckInterval = time.Minute

// Features of nodes that decide which resources GPUs are requested as.
var (
	sharesGPUs      = jobs.NodeFeature{Resource: compile.VGPUNumber}
	labelsGPUMemory = jobs.NodeFeature{Label: compile.GPUMemoryLabel}
)

func nodeFeatures(job *lattice.LatticeJob) []jobs.NodeFeature {
	if !hasGPUs(job) {
		return nil
	}
	return []jobs.NodeFeature{sharesGPUs, labelsGPUMemory}
}

func hasGPUs(job *lattice.LatticeJob) bool {
	tasks, err := compile.Tasks(compile.Outline(job))
	if err != nil {
		return false // the job cannot be compiled
	}
	for _, task := range tasks {
		for _, r := range task.Workload.Resources {
			if r.Type == lattice.GPUResource {
				return true
			}
		}
	}
	return false
}

// gpuRequestMode returns how a job with GPUs requests them, given the facts.
func gpuRequestMode(facts compile.Facts) string {
	switch {
	case facts.GPUs == compile.SharedGPUs:
		return gpuShares
	case facts.GPUMemoryLabel:
		return wholeGPUsWithMemory
	}
	return wholeGPUs
}

// queuedGPURequestMode returns how the pod sets that a job was queued for request GPUs, "" if they request none.
func queuedGPURequestMode(podSets []kueue.PodSet) string {
	mode := ""
	for i := range podSets {
		pod := &podSets[i].Template.Spec
		for _, c := range pod.Containers {
			_, shares := c.Resources.Limits[compile.VGPUNumber]
			_, whole := c.Resources.Limits[compile.WholeGPU]
			switch {
			case shares:
				return gpuShares
			case whole && needsGPUMemory(pod):
				return wholeGPUsWithMemory
			case whole:
				mode = wholeGPUs
			}
		}
	}
	return mode
}

// needsGPUMemory reports whether the pod needs a node with a minimum of GPU memory.
func needsGPUMemory(pod *corev1.PodSpec) bool {
	return podspec.HasRequirement(pod,
		func(e corev1.NodeSelectorRequirement) bool { return e.Key == compile.GPUMemoryLabel })
}

// withQueuedGPUs returns the facts with which a job that queues itself is compiled: if it was queued for these pod sets
// before, it goes on to request GPUs as they do, unless shouldChangeGPUs.
func (c controller) withQueuedGPUs(job *lattice.LatticeJob, queued []kueue.PodSet, facts compile.Facts) compile.Facts {
	mode := queuedGPURequestMode(queued)
	asked := facts
	asked.AnyService = true // describe, which does not know the services, must decide in the same way
	if !c.settings.External || mode == "" || !hasGPUs(job) || c.shouldChangeGPUs(job, mode, asked) {
		return facts
	}
	facts.GPUs, facts.GPUMemoryLabel = compile.WholeGPUs, mode == wholeGPUsWithMemory
	if mode == gpuShares {
		facts.GPUs = compile.SharedGPUs
	}
	return facts
}

// recordGPUs records on the VCJob how it requests GPUs.
func (v *view) recordGPUs(vcjob *volcano.Job) {
	if hasGPUs(v.job) {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, gpusAnnotation, gpuRequestMode(v.compileFacts()))
	}
}

// gpuRequestChanged reports whether the VCJob should be replaced because of shouldChangeGPUs. It then loses its place
// in the queue.
func (v *view) gpuRequestChanged() bool {
	recorded := v.vcjob.Annotations[gpusAnnotation]
	return recorded != "" && v.shouldChangeGPUs(v.job, recorded, v.compileFacts())
}

// shouldChangeGPUs reports whether a waiting job that requests GPUs in this mode should request them as other
// resources, because the cluster has them by now or the configuration says so; as it is, it would wait forever or
// request too little. Resources that no node offers just now are no reason, as when a device plugin restarts or a pool
// scales to zero; nor is a job that no longer compiles.
func (c controller) shouldChangeGPUs(job *lattice.LatticeJob, mode string, facts compile.Facts) bool {
	switch current := gpuRequestMode(facts); {
	case current == mode, mode == wholeGPUsWithMemory && current == wholeGPUs:
		return false
	case mode == gpuShares && c.settings.GPUs == "":
		return false
	}
	_, err := compile.Compile(job, facts)
	return err == nil
}

// awaitsSharedGPUs reports whether the error of its compilation makes the job wait, not fail: nodes that share their
// GPUs may be away just now. A new job fails, since perhaps nobody meant to add nodes that share GPUs.
func awaitsSharedGPUs(job *lattice.LatticeJob, err error) bool {
	var unshared *compile.UnsharedGPUsError
	return job.Status.Phase == lattice.Pending && errors.As(err, &unshared)
}

// recheckGPUs makes the job be planned again soon if what nodes offer may change how it requests GPUs.
func (p *planner) recheckGPUs() {
	if hasGPUs(p.job) {
		p.plan.DueBy(p.seen.Now.Add(gpuRecheckInterval))
	}
}
