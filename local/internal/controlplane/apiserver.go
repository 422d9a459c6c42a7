package controlplane

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// readyPollInterval is the interval at which /readyz is polled while the server starts.
const readyPollInterval = 20 * time.Millisecond

type apiServer struct {
	chain    *aggregator.APIAggregator
	loopback *rest.Config
}

// newAPIServer builds the server; it serves when run is called. The feature
// gates given here hold for the whole process, so it comes before the
// scheduler and the controller manager.
func newAPIServer(ctx context.Context, listener net.Listener, etcd string, c *credentials) (*apiServer, error) {
	// The server warns its own loopback clients about old APIs that it needs.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	config, err := configure(ctx, listener, etcd, c)
	if err != nil {
		return nil, fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	chain, err := app.CreateServerChain(config)
	if err != nil {
		return nil, fmt.Errorf("building kube-apiserver: %w", err)
	}
	return &apiServer{chain: chain, loopback: chain.GenericAPIServer.LoopbackClientConfig}, nil
}

// configure returns the complete configuration of the server.
func configure(ctx context.Context, listener net.Listener, etcd string, c *credentials) (app.CompletedConfig, error) {
	var none app.CompletedConfig
	o := options.NewServerRunOptions()
	if err := parse(o.Flags(), apiServerFlags(listener, etcd, c)); err != nil {
		return none, err
	}
	o.SecureServing.Listener = listener
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return none, fmt.Errorf("setting the feature gates: %w", err)
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return none, err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return none, utilerrors.NewAggregate(errs)
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return none, err
	}
	return config.Complete()
}

func apiServerFlags(listener net.Listener, etcd string, c *credentials) []string {
	address := listener.Addr().(*net.TCPAddr)
	return []string{
		"--etcd-servers=" + etcd,

		"--bind-address=" + address.IP.String(),
		"--secure-port=" + strconv.Itoa(address.Port),
		// A loopback address cannot be the endpoint of the service kubernetes.
		"--advertise-address=" + address.IP.String(),
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,

		"--tls-cert-file=" + c.serving.CertFile,
		"--tls-private-key-file=" + c.serving.KeyFile,
		"--client-ca-file=" + c.authority.CertFile(),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc." + clusterDomain,
		"--service-account-key-file=" + c.serviceAccountKey,
		"--service-account-signing-key-file=" + c.serviceAccountKey,

		"--kubelet-client-certificate=" + c.kubeletClient.CertFile,
		"--kubelet-client-key=" + c.kubeletClient.KeyFile,
		"--kubelet-certificate-authority=" + c.authority.CertFile(),
		"--kubelet-preferred-address-types=InternalIP",

		"--proxy-client-cert-file=" + c.frontProxyClient.CertFile,
		"--proxy-client-key-file=" + c.frontProxyClient.KeyFile,
		"--requestheader-client-ca-file=" + c.frontProxy.CertFile(),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",

		"--allow-privileged=true",
		// It taints each new node until the node is Ready, which would need another write to remove. The node lifecycle
		// controller taints nodes that are not Ready anyway, and nodes here are created Ready.
		"--disable-admission-plugins=TaintNodesByCondition",
		"--profiling=false",
		// Otherwise shutdown waits a minute for watches to end.
		"--shutdown-watch-termination-grace-period=2s",
		// Gangs in kube-scheduler: beta in 1.37, off by default. Admission
		// policies, validating and mutating, are stable and on.
		"--feature-gates=GenericWorkload=true",
		"--runtime-config=scheduling.k8s.io/v1beta1=true",
	}
}

func (a *apiServer) run(ctx context.Context) error {
	prepared, err := a.chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("preparing to serve: %w", err)
	}
	return prepared.Run(ctx)
}

// slowHooks write the default roles and priority classes to an empty database, one after another. Clients with all
// rights need not wait for them.
var slowHooks = []string{"poststarthook/rbac/bootstrap-roles",
	"poststarthook/scheduling/bootstrap-system-priority-classes"}

// awaitServing blocks until the server is ready but for its slow hooks.
func (a *apiServer) awaitServing(ctx context.Context) error { return a.await(ctx, slowHooks...) }

// awaitReady blocks until the server says that it is ready: all post-start
// hooks have run.
func (a *apiServer) awaitReady(ctx context.Context) error { return a.await(ctx) }

// await blocks until /readyz succeeds, with some of its checks excluded.
func (a *apiServer) await(ctx context.Context, without ...string) error {
	client, err := kubernetes.NewForConfig(a.loopback)
	if err != nil {
		return fmt.Errorf("making a client of kube-apiserver: %w", err)
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, readyPollInterval, true, func(ctx context.Context) (bool, error) {
		request := client.Discovery().RESTClient().Get().AbsPath("/readyz")
		for _, check := range without {
			request.Param("exclude", check)
		}
		var status int
		last = request.Do(ctx).StatusCode(&status).Error()
		return status == http.StatusOK, nil
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("waiting for kube-apiserver: %w (it last answered: %v)", err, last)
	}
	return nil
}

// parse sets a component's options from flags, as its command line would.
func parse(sets cliflag.NamedFlagSets, flags []string) error {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(flags); err != nil {
		return fmt.Errorf("flags %s: %w", strings.Join(flags, " "), err)
	}
	return nil
}
