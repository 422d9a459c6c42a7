package latticejob

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// gpusAnnotation, of a VCJob with GPUs, is how it was made to ask for them: one of those below.
const gpusAnnotation = "lattice.dev/gpus"

const (
	asksForParts   = "vgpu"
	asksForWhole   = "whole"
	asksWithMemory = "whole with memory"
)

// gpusLookedAtEvery is how often it is looked for other GPUs while a job waits that has some: nothing tells when nodes come to offer them.
const gpusLookedAtEvery = time.Minute

// Features of nodes on which it depends in which resources GPUs are asked for.
var (
	sharesGPUs       = jobs.NodeFeature{Resource: compile.VGPUNumber}
	tellsOfGPUMemory = jobs.NodeFeature{Label: compile.GPUMemoryLabel}
)

func asksNodes(job *lattice.LatticeJob) []jobs.NodeFeature {
	if !hasGPUs(job) {
		return nil
	}
	return []jobs.NodeFeature{sharesGPUs, tellsOfGPUMemory}
}

func hasGPUs(job *lattice.LatticeJob) bool {
	tasks, err := compile.Tasks(job)
	if err != nil {
		return false // it cannot be compiled
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

// asksForGPUs is how a job with GPUs asks for them where the cluster is as the facts have it.
func asksForGPUs(facts compile.Facts) string {
	switch {
	case facts.GPUs == compile.SharedGPUs:
		return asksForParts
	case facts.GPUMemoryLabel:
		return asksWithMemory
	}
	return asksForWhole
}

// noteGPUs has the VCJob say how it was made to ask for GPUs.
func (l *look) noteGPUs(vcjob *volcano.Job) {
	if hasGPUs(l.job) {
		metav1.SetMetaDataAnnotation(&vcjob.ObjectMeta, gpusAnnotation, asksForGPUs(l.facts(l.seen.Facts, l.seen.Related)))
	}
}

// asksForOtherGPUs reports whether the VCJob could ask for the right GPUs by now, or is configured to: it would wait for ever, or for too
// little. It loses its place in line with that, so what no node offers just now is no reason, as where a device plugin restarts or a pool
// scales to zero, nor is what would not be compiled.
func (l *look) asksForOtherGPUs() bool {
	made := l.vcjob.Annotations[gpusAnnotation]
	if made == "" {
		return false
	}
	facts := l.facts(l.seen.Facts, l.seen.Related)
	switch asks := asksForGPUs(facts); {
	case asks == made, made == asksWithMemory && asks == asksForWhole:
		return false
	case made == asksForParts && l.settings.GPUs == "":
		return false
	}
	_, err := compile.Compile(l.job, facts)
	return err == nil
}
