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
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
)

// configuration gives that of the file, or the default one if there is none.
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

// nativeGangs reports whether jobs are to make PodGroups, as the API server answers in the namespace whose jobs are run, in any if
// it is empty. Where that cannot be found out they do without, which takes nothing from a gang but a second pair of eyes.
func nativeGangs(ctx context.Context, mgr manager.Manager, cfg *v1alpha1.Configuration, namespace string) bool {
	if *cfg.Gangs.Native == v1alpha1.NativeGangsOff {
		return false
	}
	log := ctrl.Log.WithName("gangs")
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		log.Error(err, "making a client; gangs are not told to kube-scheduler")
		return false
	}
	has, err := jobs.HasNativeGangs(ctx, direct, cmp.Or(namespace, corev1.NamespaceDefault))
	if err != nil {
		log.Error(err, "gangs are not told to kube-scheduler; the next start tries again")
		return false
	}
	log.Info("asked whether the cluster has gangs of its own", "native", has)
	return has
}

// backoffOf is what the configuration, a complete one, says about jobs whose pods do not come into being.
func backoffOf(cfg *v1alpha1.Configuration) jobs.Backoff {
	strategy := cfg.WaitForPodsReady.RequeuingStrategy
	return jobs.Backoff{
		Base:  time.Duration(*strategy.BackoffBaseSeconds) * time.Second,
		Max:   time.Duration(*strategy.BackoffMaxSeconds) * time.Second,
		Limit: strategy.BackoffLimitCount,
	}
}

// mostReadinessPatience bounds how long it may be kept back that pods are ready, for people who look.
const mostReadinessPatience = 3 * time.Minute

// readinessOf says how long it may be kept back that pods are ready, while the API server is busy: a small part of the time that
// they may take; not at all where other jobs wait for it.
func readinessOf(cfg *v1alpha1.Configuration, busy func() bool) jobs.Readiness {
	if wait := cfg.WaitForPodsReady; !*wait.Enable || *wait.BlockAdmission == v1alpha1.BlockNone {
		return jobs.Readiness{Busy: busy, Patience: min(wait.Timeout.Duration/10, mostReadinessPatience)}
	}
	return jobs.Readiness{}
}

// trainingJobs is what the configuration, a complete one, says about TrainingJobs.
func trainingJobs(cfg *v1alpha1.Configuration) trainingjob.Settings {
	t := cfg.TrainingJob
	return trainingjob.Settings{Group: *t.Group, PendingTimeout: t.PendingTimeout.Duration, Cooldown: t.Cooldown.Duration}
}
