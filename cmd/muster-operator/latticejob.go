package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/musterhq/muster/api/config/v1alpha1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// latticeJobs returns the API of LatticeJobs according to cfg, which must be defaulted. external is set if Volcano runs
// the VCJobs that they are compiled to.
func latticeJobs(cfg *v1alpha1.LatticeJob, external bool) jobs.API[*lattice.LatticeJob] {
	settings := latticejob.Settings{
		External: external, NeedMesh: *cfg.RequireMesh, NeedTracing: *cfg.RequireTracing,
		SpreadBy: *cfg.SpreadBy, Cluster: cfg.Cluster, GPUModels: map[string]string{},
	}
	switch *cfg.GPUs {
	case v1alpha1.GPUResourcesShared:
		settings.GPUs = compile.SharedGPUs
	case v1alpha1.GPUResourcesWhole:
		settings.GPUs = compile.WholeGPUs
	}
	for model, product := range cfg.GPUModels {
		settings.GPUModels[strings.ToUpper(model)] = product
	}
	return latticejob.New(settings)
}

// hasVolcanoJobs reports whether the cluster serves VCJobs. If their CRD is not installed, LatticeJobs wait until the
// operator is restarted with it.
func hasVolcanoJobs(kinds meta.RESTMapper) bool {
	_, err := kinds.RESTMapping(volcano.GroupVersion.WithKind("Job").GroupKind(), volcano.GroupVersion.Version)
	if err != nil {
		ctrl.Log.WithName("latticejob").Info("LatticeJobs wait until the definitions are installed (--install-apis) and the operator is started again",
			"why", err.Error())
	}
	return err == nil
}
