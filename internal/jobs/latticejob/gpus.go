package latticejob

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
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
	tasks, err := compile.Tasks(job)
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

// recordGPUs records on the VCJob how it requests GPUs.
func (l *planner) recordGPUs(vcjob *volcano.Job) {
	if hasGPUs(l.job) {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, gpusAnnotation, gpuRequestMode(l.facts(l.seen.Facts, l.seen.Related)))
	}
}

// gpuRequestChanged reports whether the VCJob should request GPUs as other resources, because the
// cluster has them by now or the configuration says so; as it is, it would wait forever or request too
// little. Replacing it loses its place in the queue. So resources that no node offers just now are no
// reason, as when a device plugin restarts or a pool scales to zero; nor is a job that no longer
// compiles.
func (l *planner) gpuRequestChanged() bool {
	recorded := l.vcjob.Annotations[gpusAnnotation]
	if recorded == "" {
		return false
	}
	facts := l.facts(l.seen.Facts, l.seen.Related)
	switch current := gpuRequestMode(facts); {
	case current == recorded, recorded == wholeGPUsWithMemory && current == wholeGPUs:
		return false
	case recorded == gpuShares && l.settings.GPUs == "":
		return false
	}
	_, err := compile.Compile(l.job, facts)
	return err == nil
}
