package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/jobs/controller/waiting"
	"github.com/musterhq/muster/internal/jobs/probe"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/jobs/workloads"
)

// configuration loads the file at path, or returns the default configuration if path is empty.
func configuration(path string) (*v1alpha1.Configuration, error) {
	if path == "" {
		return config.Default(), nil
	}
	return config.Load(path)
}

func printConfiguration(cfg *v1alpha1.Configuration) error {
	text, err := yaml.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	_, err = os.Stdout.Write(text)
	return err
}

// nativeGangs reports whether jobs create PodGroups for kube-scheduler's own gang scheduling. If the API server does
// not tell, jobs do without PodGroups: these only add a check in kube-scheduler to gangs that Muster admits and places
// anyway.
func nativeGangs(ctx context.Context, mgr manager.Manager, cfg *v1alpha1.Configuration, namespace string) bool {
	if *cfg.Gangs.Native == v1alpha1.NativeGangsOff {
		return false
	}
	has, err := ask(ctx, mgr, namespace, probe.HasNativeGangs)
	log := ctrl.Log.WithName("gangs")
	if err != nil {
		log.Error(err, "kube-scheduler is not told about gangs; the next start tries again")
		return false
	}
	log.Info("checked whether the cluster supports gangs natively", "native", has)
	return has
}

// strictServiceNames reports whether the cluster takes only names of Services that begin with a letter. If the API
// server does not tell, jobs may have other names: the API server then refuses their Services, and the jobs give their
// quota back, again and again.
func strictServiceNames(ctx context.Context, mgr manager.Manager, namespace string) bool {
	strict, err := ask(ctx, mgr, namespace, probe.HasStrictServiceNames)
	if err != nil {
		ctrl.Log.WithName("service-names").Error(err,
			"jobs that need a Service may have names that begin with a digit; the next start tries again")
	}
	return strict
}

// ask asks the API server itself, as the cache has not started yet, about objects in namespace, or in "default" if that
// is empty.
func ask(ctx context.Context, mgr manager.Manager, namespace string,
	has func(context.Context, client.Client, string) (bool, error)) (bool, error) {
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return false, fmt.Errorf("making a client: %w", err)
	}
	return has(ctx, direct, cmp.Or(namespace, corev1.NamespaceDefault))
}

// backoffOf returns the configured backoff of jobs whose pods cannot be created. cfg must be defaulted.
func backoffOf(cfg *v1alpha1.Configuration) workloads.Backoff {
	strategy := cfg.WaitForPodsReady.RequeuingStrategy
	return workloads.Backoff{
		Base:  time.Duration(*strategy.BackoffBaseSeconds) * time.Second,
		Max:   time.Duration(*strategy.BackoffMaxSeconds) * time.Second,
		Limit: strategy.BackoffLimitCount,
	}
}

// maxReadinessDelay bounds the delay of readinessOf, so that users see the readiness of pods reasonably soon.
const maxReadinessDelay = 3 * time.Minute

// readinessOf returns how long condition PodsReady may be delayed while the API server is busy: a fraction of the time
// that pods may take to be ready, and nothing if other jobs wait for that condition.
func readinessOf(cfg *v1alpha1.Configuration, busy func() bool) waiting.Readiness {
	if wait := cfg.WaitForPodsReady; !*wait.Enable || *wait.BlockAdmission == v1alpha1.BlockNone {
		return waiting.Readiness{Busy: busy, Patience: min(wait.Timeout.Duration/10, maxReadinessDelay)}
	}
	return waiting.Readiness{}
}

// trainingJobs returns the settings of TrainingJobs from cfg, which must be defaulted.
func trainingJobs(cfg *v1alpha1.Configuration) trainingjob.Settings {
	t := cfg.TrainingJob
	return trainingjob.Settings{Group: *t.Group, PendingTimeout: t.PendingTimeout.Duration, Cooldown: t.Cooldown.Duration}
}
