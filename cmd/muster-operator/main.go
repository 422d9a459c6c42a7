// Command muster-operator is the controller manager of Muster: wiring only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	webhookserver "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/config/v1alpha1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/admission"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/genericjob"
	jobsetapi "github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/jobs/placer"
	"github.com/musterhq/muster/internal/jobs/trainingjob"
	"github.com/musterhq/muster/internal/jobs/vcjob"
	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/webhook"
)

// version is that of the chart which the build is of; whoever links it says so.
var version = "unknown"

// options are the flags. --kubeconfig is controller-runtime's own.
type options struct {
	config                  string
	printConfig             bool
	printVersion            bool
	decisionLog             string
	installAPIs             bool
	installFor              string
	adoptAPIs               bool
	namespace               string
	leaderElect             bool
	leaderElectionNamespace string
	leaseDuration           time.Duration
	metricsAddress          string
	probeAddress            string
	metricsSecure           bool
	profiling               bool
	webhookPort             int
	webhookCertificates     string
	webhookService          string
	rendezvousBind          string
	rendezvousAddress       string
	agentImage              string
	traceEndpoint           string
	traceSampling           float64
	qps                     float64
	burst                   int
}

func main() {
	var o options
	flag.StringVar(&o.config, "config", "", "path of the configuration file (default: none, every option at its default)")
	flag.BoolVar(&o.printConfig, "print-config", false, "print the configuration with all defaults filled in and exit; fails if the file is wrong")
	flag.BoolVar(&o.printVersion, "version", false, "print the version and exit")
	flag.StringVar(&o.decisionLog, "decision-log", "", "append all that is heard and decided to this file, for muster replay (default: none)")
	flag.BoolVar(&o.installAPIs, "install-apis", false, "apply the CRDs and policies before starting")
	flag.StringVar(&o.installFor, "install-for", "", "apply the CRDs and policies for an operator that runs as this user, give the user the rights that it needs, and exit")
	flag.BoolVar(&o.adoptAPIs, "adopt-apis", false, "with --install-apis or --install-for: take over CRDs that somebody else has installed, instead of refusing")
	flag.StringVar(&o.namespace, "namespace", "", "run the jobs of this namespace alone (default: of all)")
	flag.BoolVar(&o.leaderElect, "leader-elect", true, "let one of several operators decide; without it, run only one")
	flag.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease (default: the operator's own, or kube-system outside of a cluster)")
	flag.DurationVar(&o.leaseDuration, "leader-election-lease", defaultLease, "for how long one operator leads after it was last heard of, at least 1s: another takes over soon after")
	flag.StringVar(&o.metricsAddress, "metrics-bind-address", "127.0.0.1:8080", "address that serves metrics, 0 for none")
	flag.StringVar(&o.probeAddress, "health-probe-bind-address", "127.0.0.1:8081", "address that serves /healthz and /readyz")
	flag.BoolVar(&o.metricsSecure, "metrics-secure", false, "serve metrics over TLS, to those alone whose token may get /metrics by RBAC")
	flag.BoolVar(&o.profiling, "profiling", false, "serve profiles under /debug/pprof beside the metrics, in the same way")
	flag.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the webhooks for batch Jobs and pods, where the configuration turns them on")
	flag.StringVar(&o.webhookCertificates, "webhook-cert-dir", "/etc/muster/webhook", "directory with tls.crt and tls.key of those webhooks; they may change. Without --webhook-service alone")
	flag.StringVar(&o.webhookService, "webhook-service", "", "Service by which the API server reaches those webhooks, as NAME.NAMESPACE.svc: the operator then makes the certificates itself, renews them, and has the API server trust them")
	flag.StringVar(&o.rendezvousAddress, "rendezvous-address", "", "host and port at which pods reach this operator, for the agents in them (default: none, and no job gets an agent)")
	flag.StringVar(&o.rendezvousBind, "rendezvous-bind-address", ":9444", "address that serves agents, where --rendezvous-address is set")
	flag.StringVar(&o.agentImage, "agent-image", "muster-operator", "image with muster-agent in its PATH, that pods with an agent get it from: the operator's own")
	flag.StringVar(&o.traceEndpoint, "trace-endpoint", "", "URL of a collector that takes OTLP over HTTP, such as http://collector:4318, to which traces of jobs are sent (default: none are)")
	flag.Float64Var(&o.traceSampling, "trace-sampling", 1, "part of jobs that are traced, up to 1 for all")
	flag.Float64Var(&o.qps, "kube-api-qps", 500, "requests a second to the API server in the long run")
	flag.IntVar(&o.burst, "kube-api-burst", 1000, "requests to the API server at once")
	var logs zap.Options
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	if o.printVersion {
		fmt.Println(version)
		return
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logs)))
	ctrl.Log.Info("Muster begins", "version", version)
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintf(os.Stderr, "muster-operator: %v\n", err)
		os.Exit(1)
	}
}

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
	if o.installFor != "" {
		return installFor(ctx, cluster, cfg, o)
	}
	if o.installAPIs {
		if err := installAPIs(ctx, cluster, cfg, ownName(ctx, cluster), o.adoptAPIs); err != nil {
			return err
		}
	}
	if err := install.AwaitServed(ctx, cluster); err != nil {
		return fmt.Errorf("waiting for the definitions: %w", err)
	}
	hooks, err := openWebhooks(ctx, cluster, cfg, o)
	if err != nil {
		return err
	}
	mgr, err := newManager(cluster, o, *cfg.TrainingJob.Group, hooks)
	if err != nil {
		return err
	}
	background, err := admission.AddTo(mgr, cfg, o.decisionLog)
	if err != nil {
		return err
	}
	executor := jobs.NewExecutor(mgr.GetClient(), background.Recorder)
	settings := jobs.Settings{Backoff: backoffOf(cfg), NativeGangs: nativeGangs(ctx, mgr, cfg), Agent: agent(ctx, mgr, o), Readiness: readinessOf(cfg, background.Busy), Busy: background.Busy}
	apis := []jobs.Served{jobsetapi.API, genericjob.API, trainingjob.API(trainingJobs(cfg)), batchjob.API}
	external, err := install.LeavesVolcanoJobs(ctx, cluster, *cfg.Volcano)
	if err != nil {
		return err
	}
	if external {
		apis = append(apis, latticeJobs(cfg.LatticeJob, external))
	} else if hasVolcanoJobs(mgr.GetRESTMapper()) {
		apis = append(apis, latticeJobs(cfg.LatticeJob, external), vcjob.API)
		if err := admission.AddVolcanoQueues(mgr); err != nil {
			return err
		}
	}
	if !external {
		if err := install.StandDownForVolcano(mgr, *cfg.Volcano); err != nil {
			return err
		}
	}
	if err := jobs.AddTo(mgr, executor, settings, apis...); err != nil {
		return err
	}
	if err := placer.AddTo(mgr); err != nil {
		return err
	}
	if o.traceEndpoint != "" {
		if err := tracing.AddTo(ctx, mgr, tracing.Options{Endpoint: o.traceEndpoint, Sampling: o.traceSampling, Kinds: jobs.Kinds(apis...)}); err != nil {
			return err
		}
	}
	if err := publish(mgr, cfg); err != nil {
		return err
	}
	if err := hooks.addTo(mgr, cfg); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// nativeGangs reports whether jobs are to make PodGroups. Where that cannot be found out
// they do without, which takes nothing from a gang but a second pair of eyes.
func nativeGangs(ctx context.Context, mgr manager.Manager, cfg *v1alpha1.Configuration) bool {
	if *cfg.Gangs.Native == v1alpha1.NativeGangsOff {
		return false
	}
	log := ctrl.Log.WithName("gangs")
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		log.Error(err, "making a client; gangs are not told to kube-scheduler")
		return false
	}
	has, err := jobs.HasNativeGangs(ctx, direct, corev1.NamespaceDefault)
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

func newManager(cluster *rest.Config, o options, trainingJobGroup string, hooks webhooks) (manager.Manager, error) {
	namespace := o.leaderElectionNamespace
	if namespace == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		namespace = "kube-system"
	}
	metrics, err := metricsServer(o)
	if err != nil {
		return nil, err
	}
	term, err := termOf(o.leaseDuration)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        newScheme(trainingJobGroup),
		Metrics:                       metrics,
		HealthProbeBindAddress:        o.probeAddress,
		WebhookServer:                 webhookserver.NewServer(hooks.options(o)),
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "muster.dev",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true, // who ends in order has nobody wait
		LeaseDuration:                 &term.lease,
		RenewDeadline:                 &term.renew,
		RetryPeriod:                   &term.retry,
		GracefulShutdownTimeout:       ptr.To(shutdownPatience),
		// Who does not lead reads along, so that it can take over at once.
		Controller: ctrlconfig.Controller{EnableWarmup: ptr.To(true)},
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: only(o.namespace),
			ByObject:          cached(o.namespace, hooks),
		},
		// What a reconcile wrote, the next one sees: plans are made of what there is.
		Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("caches", admission.Synced(mgr.GetCache()))
}

// only has the cache keep what is in the namespace, if one is named; what has none is kept all the same.
func only(namespace string) map[string]cache.Config {
	if namespace == "" {
		return nil
	}
	return map[string]cache.Config{namespace: {}}
}

// cached is what the cache keeps less than all of. Of pods it keeps those of all namespaces, whatever jobs are run: they take
// room of nodes.
func cached(namespace string, hooks webhooks) map[client.Object]cache.ByObject {
	out := admission.Cached()
	if namespace != "" {
		for kind, by := range out {
			if _, pods := kind.(*corev1.Pod); pods {
				by.Namespaces = map[string]cache.Config{cache.AllNamespaces: {}}
				out[kind] = by
			}
		}
	}
	out[&corev1.Event{}] = jobs.Refusals()
	if hooks.certificates != nil {
		kind, which := webhook.Cached()
		out[kind] = which
	}
	return out
}

// newScheme knows every API that the operator reads or writes.
func newScheme(trainingJobGroup string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, jobset.AddToScheme, tensorstack.AddToScheme,
		lattice.AddToScheme, volcano.AddToScheme, bus.AddToScheme, scheduling.AddToScheme, breezeml.AddToSchemeAs(trainingJobGroup)} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}
