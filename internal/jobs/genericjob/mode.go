package genericjob

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// paused reports whether the job's user has paused it. That goes before debug mode.
func paused(job *tensorstack.GenericJob) bool {
	mode := job.Spec.RunMode
	return mode != nil && mode.Pause != nil && mode.Pause.Enabled
}

// debugged reports whether pods are made that do nothing.
func debugged(job *tensorstack.GenericJob) bool {
	mode := job.Spec.RunMode
	return mode != nil && mode.Debug != nil && mode.Debug.Enabled
}

// debugCommand is what the main container runs in debug mode unless told otherwise.
var debugCommand = []string{"sleep", "inf"}

// applyMode changes a pod of the type as the run mode asks: in debug mode, or made
// after a pause. It changes the main container, which is the first. The spec must be
// the pod's own.
func applyMode(job *tensorstack.GenericJob, replicaType string, spec *corev1.PodSpec) {
	switch {
	case debugged(job):
		of := debugOf(job.Spec.RunMode.Debug, replicaType)
		skipInit(spec, of.SkipInitContainer)
		if main := mainContainer(spec); main != nil {
			main.Command, main.Args = of.Command, nil
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

// debugOf is what debug mode says of a type, with the defaults.
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

// resumeOf is what is said of a type for the time after a pause, nil if nothing is.
func resumeOf(job *tensorstack.GenericJob, replicaType string) *tensorstack.ResumeSpec {
	if job.Spec.RunMode == nil || job.Spec.RunMode.Pause == nil {
		return nil
	}
	specs := job.Spec.RunMode.Pause.ResumeSpecs
	for i := range specs {
		if specs[i].Type == replicaType {
			return &specs[i]
		}
	}
	return nil
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
