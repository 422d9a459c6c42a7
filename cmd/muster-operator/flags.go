package main

import (
	"flag"
	"fmt"
	"time"
)

// options are the values of the flags. --kubeconfig is defined by controller-runtime.
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

// readOptions parses arguments into options; set may already define other flags. Package flag stops at the first
// positional argument and would silently ignore the flags after it, so positional arguments are an error.
func readOptions(set *flag.FlagSet, arguments []string) (options, error) {
	var o options
	o.bind(set)
	if err := set.Parse(arguments); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: all options are flags (--help lists them), and booleans are written as --leader-elect=false", set.Arg(0))
	}
	return o, nil
}

// bind defines the flags in set.
func (o *options) bind(set *flag.FlagSet) {
	set.StringVar(&o.config, "config", "", "path of the configuration file (default: none, every option at its default)")
	set.BoolVar(&o.printConfig, "print-config", false,
		"print the configuration with all defaults filled in and exit; fails if the file is wrong")
	set.BoolVar(&o.printVersion, "version", false, "print the version and exit")
	set.StringVar(&o.decisionLog, "decision-log", "",
		"append all inputs and decisions of the engine to this file, for muster replay (default: none)")
	set.BoolVar(&o.installAPIs, "install-apis", false, "apply the CRDs and policies before starting")
	set.StringVar(&o.installFor, "install-for", "",
		"apply the CRDs and policies for an operator that runs as this user, give the user the rights that it needs, let holders of view, edit and admin use the job APIs, and exit")
	set.BoolVar(&o.adoptAPIs, "adopt-apis", false,
		"with --install-apis or --install-for: take over CRDs that others have installed, instead of refusing")
	set.StringVar(&o.namespace, "namespace", "", "run only the jobs of this namespace (default: of all namespaces)")
	set.BoolVar(&o.leaderElect, "leader-elect", true, "elect a leader among several operators; without it, run only one")
	set.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the lease (default: the operator's own, or kube-system outside of a cluster)")
	set.DurationVar(&o.leaseDuration, "leader-election-lease", defaultLease,
		"duration of the leader's lease, at least 1s: another operator takes over soon after the lease has expired")
	set.StringVar(&o.metricsAddress, "metrics-bind-address", "127.0.0.1:8080", "address that serves metrics, 0 for none")
	set.StringVar(&o.probeAddress, "health-probe-bind-address", "127.0.0.1:8081",
		"address that serves /healthz and /readyz")
	set.BoolVar(&o.metricsSecure, "metrics-secure", false,
		"serve metrics over TLS, only to clients whose token RBAC allows to get /metrics")
	set.BoolVar(&o.profiling, "profiling", false, "serve profiles under /debug/pprof beside the metrics, in the same way")
	set.IntVar(&o.webhookPort, "webhook-port", 9443,
		"port of the webhooks for batch Jobs and pods, if the configuration enables them")
	set.StringVar(&o.webhookCertificates, "webhook-cert-dir", "/etc/muster/webhook",
		"directory with tls.crt and tls.key of those webhooks, which are reloaded when they change; only without --webhook-service")
	set.StringVar(&o.webhookService, "webhook-service", "",
		"Service by which the API server reaches those webhooks, as NAME.NAMESPACE.svc: the operator then creates and renews the certificates itself, and configures the API server to trust them")
	set.StringVar(&o.rendezvousAddress, "rendezvous-address", "",
		"host and port at which the agents in pods reach this operator (default: none, and no job gets an agent)")
	set.StringVar(&o.rendezvousBind, "rendezvous-bind-address", ":9444",
		"address that serves agents, if --rendezvous-address is set")
	set.StringVar(&o.agentImage, "agent-image", "muster-operator",
		"image from which pods get muster-agent, which must be in its PATH: the operator's own")
	set.StringVar(&o.traceEndpoint, "trace-endpoint", "",
		"URL of a collector of OTLP over HTTP, such as http://collector:4318, to which traces of jobs are sent (default: none)")
	set.Float64Var(&o.traceSampling, "trace-sampling", 1, "fraction of jobs that are traced, up to 1 for all")
	set.Float64Var(&o.qps, "kube-api-qps", 500, "maximum average rate of requests to the API server, per second")
	set.IntVar(&o.burst, "kube-api-burst", 1000, "maximum burst of requests to the API server")
}
