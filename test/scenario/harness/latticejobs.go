package harness

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// LatticeJobs is a world with LatticeJobs and their VCJobs.
type LatticeJobs struct{ *World }

// UntilLatticeJob waits until the condition holds for the LatticeJob of this name, and returns it.
func (l LatticeJobs) UntilLatticeJob(name, what string, holds func(*lattice.LatticeJob) bool) *lattice.LatticeJob {
	l.Helper()
	return UntilOne(l.World, &lattice.LatticeJobList{}, name, what, holds)
}

// UntilPhase waits until the LatticeJob of this name is in the phase, and returns it.
func (l LatticeJobs) UntilPhase(name string, phase lattice.JobPhase) *lattice.LatticeJob {
	l.Helper()
	return l.UntilLatticeJob(name, "is "+string(phase),
		func(job *lattice.LatticeJob) bool { return job.Status.Phase == phase })
}

// VCJob returns the VCJob of the LatticeJob of this name, nil if there is none.
func (l LatticeJobs) VCJob(name string) *volcano.Job {
	l.Helper()
	found := &volcano.Job{}
	err := l.Client.Get(l.Context(), client.ObjectKey{Namespace: l.Namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		l.Fatal(err)
	}
	return found
}

// ForeignKind returns a CRD as another product would install it: with a status subresource and without a schema.
func ForeignKind(group, version, kind, plural string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
					"x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}}
}
