// Command muster-operator is the controller manager of Muster: wiring only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/musterhq/muster/api/config/v1alpha1"
	"github.com/musterhq/muster/internal/admission"
	"github.com/musterhq/muster/internal/admission/managedqueues"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/jobs/genericjob"
	jobsetapi "github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/jobs/placer"
	"github.com/musterhq/muster/internal/jobs/probe"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/jobs/vcjob"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/listwatch"
	"github.com/musterhq/muster/internal/rendezvous"
	"github.com/musterhq/muster/internal/tracing"
)

// version is the version of the chart that this build belongs to, set by the linker (-X).
var version = "unknown"

// exitUsage is the exit code for invalid flags, the one that package flag uses.
const exitUsage = 2

func main() {
	var logs zap.Options
	logs.BindFlags(flag.CommandLine)
	o, err := readOptions(flag.CommandLine, os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "muster-operator: %v\n", err)
		os.Exit(exitUsage)
	case o.printVersion:
		fmt.Println(version)
		return
	}
	ctrl.SetLogger(newLogger(zap.UseFlagOptions(&logs)))
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintf(os.Stderr, "muster-operator: %v\n", err)
		os.Exit(1)
	}
}

// run does the one-time task that the flags ask for, or runs the operator until ctx ends.
func run(ctx context.Context, o options) error {
	cfg, err := configuration(o.config)
	if err != nil {
		return err
	}
	if o.printConfig {
		return printConfiguration(cfg)
	}
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster (set --kubeconfig, or run in a pod): %w", err)
	}
	cluster.QPS, cluster.Burst = float32(o.qps), o.burst
	// As kube-controller-manager does: with compression the API server compresses each event of a watch's initial list
	// individually.
	cluster.DisableCompression = true
	if o.installFor != "" {
		return installFor(ctx, cluster, cfg, o)
	}
	ctrl.Log.Info("Muster begins", "version", version, "memoryLimit", boundMemory(rendezvous.MemoryLimit()))
	if err := prepare(ctx, cluster, cfg, o); err != nil {
		return err
	}
	return operate(ctx, cluster, cfg, o)
}

// prepare returns when the cluster serves the APIs.
func prepare(ctx context.Context, cluster *rest.Config, cfg *v1alpha1.Configuration, o options) error {
	stop, err := answerProbes(o.probeAddress)
	if err != nil {
		return err
	}
	defer stop() // the manager listens at the same address
	if err := listwatch.AwaitReached(ctx, cluster); err != nil {
		return err
	}
	if o.installAPIs {
		if err := installAPIs(ctx, cluster, cfg, ownName(ctx, cluster), o.adoptAPIs); err != nil {
			return err
		}
	}
	if err := install.AwaitServed(ctx, cluster); err != nil {
		return fmt.Errorf("waiting for the definitions: %w", err)
	}
	return install.CheckInstalled(cluster)
}

// operate runs all controllers, on a cluster that serves the APIs.
func operate(ctx context.Context, cluster *rest.Config, cfg *v1alpha1.Configuration, o options) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go boundGarbage(ctx)
	hooks, err := openWebhooks(ctx, cluster, cfg, o)
	if err != nil {
		return err
	}
	term, err := termOf(o.leaseDuration)
	if err != nil {
		return err
	}
	leads := fenceWrites(cluster, term.renew).leads
	mgr, err := newManager(cluster, o, term, *cfg.TrainingJob.Group, hooks, end)
	if err != nil {
		return err
	}
	background, err := admission.AddTo(mgr, cfg, o.decisionLog)
	if err != nil {
		return err
	}
	apis, err := addJobs(ctx, mgr, background, leads, cfg, o)
	if err != nil {
		return err
	}
	if err := placer.AddTo(mgr); err != nil {
		return err
	}
	if o.traceEndpoint != "" {
		options := tracing.Options{
			Endpoint: o.traceEndpoint, Sampling: o.traceSampling, Kinds: controller.Kinds(apis...)}
		if err := tracing.AddTo(ctx, mgr, options); err != nil {
			return err
		}
	}
	if err := publish(mgr, cfg); err != nil {
		return err
	}
	if err := hooks.addTo(ctx, mgr, cfg); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) {
		return why
	}
	return nil
}

// addJobs adds the controllers of all job APIs that Muster runs on this cluster, and returns these APIs. VCJobs are
// left out if Volcano runs them. leads reports whether no other operator can lead by now.
func addJobs(ctx context.Context, mgr manager.Manager, background *admission.Background, leads func() bool,
	cfg *v1alpha1.Configuration, o options) ([]controller.Served, error) {
	external, err := install.VolcanoRunsJobs(ctx, mgr.GetConfig(), *cfg.Volcano)
	if err != nil {
		return nil, err
	}
	executor := write.NewExecutor(mgr.GetClient(), background.Recorder)
	apis := []controller.Served{
		controller.Serve(jobsetapi.API), controller.Serve(genericjob.API),
		controller.Serve(trainingjob.API(trainingJobs(cfg))), controller.Serve(batchjob.API),
	}
	if external {
		apis = append(apis, controller.Serve(latticeJobs(cfg.LatticeJob, external)))
		if err := controller.Abandon(mgr, executor, vcjob.API); err != nil {
			return nil, err
		}
	} else {
		if hasVolcanoJobs(mgr.GetRESTMapper()) {
			apis = append(apis, controller.Serve(latticeJobs(cfg.LatticeJob, external)), controller.Serve(vcjob.API))
			if err := managedqueues.AddVolcano(mgr, background.Recorder); err != nil {
				return nil, err
			}
		}
		if err := install.StandDownForVolcano(mgr, *cfg.Volcano); err != nil {
			return nil, err
		}
	}
	if err := controller.AbandonFormer(mgr, executor, trainingjob.API(trainingJobs(cfg))); err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, probe.ProbeTimeout)
	defer cancel()
	return apis, controller.AddTo(mgr, executor, controller.Settings{
		Backoff:            backoffOf(cfg),
		NativeGangs:        nativeGangs(asking, mgr, cfg, o.namespace),
		StrictServiceNames: strictServiceNames(asking, mgr, o.namespace),
		Agent:              agent(ctx, mgr, leads, o),
		Readiness:          readinessOf(cfg, background.Busy),
		Busy:               background.Busy,
	}, apis...)
}
