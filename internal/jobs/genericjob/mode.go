package genericjob

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/pointers"
)

// paused reports whether the user has paused the job. A pause takes precedence over debug mode.
func paused(job *tensorstack.GenericJob) bool {
	mode := job.Spec.RunMode
	return mode != nil && mode.Pause != nil && mode.Pause.Enabled
}

// debugged reports whether the job is in debug mode, in which its pods do nothing.
func debugged(job *tensorstack.GenericJob) bool {
	mode := job.Spec.RunMode
	return mode != nil && mode.Debug != nil && mode.Debug.Enabled
}

// debugCommand is the default command of the main container in debug mode.
var debugCommand = []string{"sleep", "inf"}

// applyMode changes a pod spec of the type for debug mode, or for a job that was paused before. The
// main container is the first. The spec must be the caller's own.
func applyMode(job *tensorstack.GenericJob, replicaType string, spec *corev1.PodSpec) {
	switch {
	case debugged(job):
		of := debugOf(job.Spec.RunMode.Debug, replicaType)
		skipInit(spec, of.SkipInitContainer)
		if main := mainContainer(spec); main != nil {
			main.Command, main.Args = of.Command, nil
			// They ask the program that does not run: the container would be ended, and the job fail.
			main.LivenessProbe, main.ReadinessProbe, main.StartupProbe = nil, nil, nil
		}
	case wasPaused(job):
		of := resumeOf(job, replicaType)
		if of == nil {
			return
		}
		skipInit(spec, of.SkipInitContainer)
		main := mainContainer(spec)
		if main != nil && len(of.Command) > 0 {
			main.Command = slices.Clone(of.Command)
		}
		if main != nil && len(of.Args) > 0 {
			main.Args = slices.Clone(of.Args)
		}
	}
}

// debugOf returns the debug settings of a type, with defaults.
func debugOf(mode *tensorstack.DebugMode, replicaType string) tensorstack.ReplicaDebugSet {
	out := tensorstack.ReplicaDebugSet{Type: replicaType}
	for i := range mode.ReplicaSpecs {
		if mode.ReplicaSpecs[i].Type == replicaType {
			out = mode.ReplicaSpecs[i]
		}
	}
	if len(out.Command) == 0 {
		out.Command = debugCommand
	}
	out.Command = slices.Clone(out.Command)
	return out
}

// resumeOf returns the settings of a type for after a pause, nil if there are none.
func resumeOf(job *tensorstack.GenericJob, replicaType string) *tensorstack.ResumeSpec {
	if job.Spec.RunMode == nil || job.Spec.RunMode.Pause == nil {
		return nil
	}
	specs := job.Spec.RunMode.Pause.ResumeSpecs
	return pointers.First(specs, func(spec *tensorstack.ResumeSpec) bool { return spec.Type == replicaType })
}

func skipInit(spec *corev1.PodSpec, skip bool) {
	if skip {
		spec.InitContainers = nil
	}
}

func mainContainer(spec *corev1.PodSpec) *corev1.Container {
	if len(spec.Containers) == 0 {
		return nil
	}
	return &spec.Containers[0]
}

// wasPaused reports whether the job was paused before, which the condition Paused records.
func wasPaused(job *tensorstack.GenericJob) bool {
	c := condition(job, tensorstack.JobPaused)
	return c != nil && (c.Reason == tensorstack.PausedReason || c.Reason == tensorstack.ResumedReason)
}
