package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/musterhq/muster/cmd/muster/localcluster"
	"github.com/musterhq/muster/cmd/muster/observe"
)

// connect opens the cluster that the user selected: by the flags, KUBECONFIG, ~/.kube/config or the pod this runs in;
// otherwise that of a `muster up` running in the default directory.
func connect(ctx context.Context, flags *genericclioptions.ConfigFlags) (*observe.Cluster, error) {
	silenceLibraries()
	localcluster.UseRunning()
	if err := checkClusterSelected(flags); err != nil {
		return nil, err
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w: check --kubeconfig, --context and KUBECONFIG", err)
	}
	config.QPS, config.Burst = 50, 100
	cluster, err := observe.Open(ctx, config)
	return cluster, explainConnection(err)
}

// checkClusterSelected returns an error that says what to set if nothing selects a cluster, and nil otherwise. Without
// it the client would try localhost:8080 and report a misleading error.
func checkClusterSelected(flags *genericclioptions.ConfigFlags) error {
	if *flags.APIServer != "" || os.Getenv("KUBERNETES_MASTER") != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return nil
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	switch {
	case err != nil:
		return nil // ToRESTConfig reports the unreadable kubeconfig
	case len(raw.Clusters) == 0:
		return noCluster(*flags.KubeConfig)
	case raw.CurrentContext == "" && *flags.Context == "" && *flags.ClusterName == "":
		return noContext(slices.Sorted(maps.Keys(raw.Contexts)))
	}
	return nil
}

// noContext is the error for a kubeconfig that has clusters but no current context.
func noContext(contexts []string) error {
	if len(contexts) == 0 {
		return errors.New("the kubeconfig has clusters and no context: name a cluster with --cluster, or make a context by `muster kubectl config set-context`")
	}
	const shown = 5
	there := strings.Join(contexts[:min(shown, len(contexts))], ", ")
	if len(contexts) > shown {
		there += ", …"
	}
	return fmt.Errorf("the kubeconfig has no current context: name one of %s by --context, or for good by `muster kubectl config use-context %s`", there, contexts[0])
}

// nameCluster tells the user how to select a cluster.
const nameCluster = "start one with `muster up`, or name one with KUBECONFIG or --kubeconfig"

// noCluster is the error for the case that nothing selects a cluster. It names the kubeconfig that was read, if one was
// given by --kubeconfig or KUBECONFIG.
func noCluster(kubeconfig string) error {
	if kubeconfig != "" {
		return fmt.Errorf("%s names no cluster: %s", kubeconfig, nameCluster)
	}
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return fmt.Errorf("KUBECONFIG is %s, which is not there or names no cluster: %s", path, nameCluster)
	}
	return errors.New("no cluster is named: " + nameCluster)
}

// namespaceOf returns the namespace given by -n, or else that of the kubeconfig's context, and whether it came from -n.
func namespaceOf(flags *genericclioptions.ConfigFlags) (namespace string, explicit bool, err error) {
	namespace, explicit, err = flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, fmt.Errorf("read the kubeconfig: %w: check --kubeconfig, --context and KUBECONFIG", err)
	}
	return namespace, explicit, nil
}

// silenceLibraries keeps the log lines of the client libraries off the terminal: relevant failures are returned as
// errors and printed in one line. It runs once, because a watch that is shutting down may still read the logger.
var silenceLibraries = sync.OnceFunc(func() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
})

// explainConnection appends, to an error of the first request to a cluster, what the user can do about it.
func explainConnection(err error) error {
	var unreachable *url.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, observe.ErrNotInstalled):
		return fmt.Errorf("%w: Muster is not installed there; install its chart, or use another cluster with --context or `muster up`", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: ask for permission, or choose a namespace of yours with -n", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: log in again, or check the user of the kubeconfig", err)
	case errors.As(err, &unreachable):
		host := unreachable.URL
		if parsed, parseErr := url.Parse(host); parseErr == nil {
			host = parsed.Scheme + "://" + parsed.Host
		}
		return fmt.Errorf("the API server at %s does not answer: %w: start it (`muster up`), or check --kubeconfig, --context and KUBECONFIG",
			host, unreachable.Err)
	}
	return err
}
